package clientconf

// clients are all that are known: those whose files are edited, then those that are only read.
var clients = []*Client{
	&claudeCode, &vscode, &copilotCLI, &cursor, &codex, &claudeDesktop, &geminiCLI, &cline, &opencode, &zed, &goose,
	&windsurf, &kiro, &amazonQ, &jetbrains, &lmStudio, &warp, &amp, &librechat, &antigravity, &crush, &rooCode, &continueDev,
	&ccSwitch,
}
