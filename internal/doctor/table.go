package doctor

// Severity says how bad a finding is.
type Severity string

// The severities.
const (
	Error       Severity = "E" // it does not work, or opens more than anybody wants
	Warning     Severity = "W" // it works otherwise than it reads
	Information Severity = "I" // good to know
)

// Kind is one kind of finding: what has the same ID has the same reason.
type Kind struct {
	ID string
	// Severity is the usual one; a finding may say otherwise where its fact is milder or worse.
	Severity Severity
	// Means is what is wrong, in general.
	Means string
	// Why is what comes of it, in one sentence.
	Why string
	// Fix is what to do, in one sentence.
	Fix string
	// Safe is set when some findings of the kind can be mended without a person's judgement.
	Safe bool
}

// Kinds are all the kinds of findings, by what they are about.
var Kinds = []Kind{
	// The file
	{"FILE-LEVEL", Error, "servers in a file, or at a level of it, that the client never reads",
		"The client starts none of them, and says nothing.", "Move them to the file that the client reads.", false},
	{"FILE-LEGACY", Warning, "a place that is deprecated, or two places of which only one is read",
		"The next version, or the other installation, does not read it.", "Keep the servers in the place of today only.", false},
	{"TRUST", Warning, "a project's server that the client does not start yet, because nobody trusted or enabled it",
		"It is in the file and is not running.", "Trust the project in the client, or take the server out.", false},
	{"MANAGED", Warning, "a file that another program writes, or an administrator's file that holds before it",
		"An edit here is overwritten, or has no effect.", "Change it in the program that owns it.", false},
	{"CLIENT-EOL", Information, "a client that is no longer developed",
		"Nobody mends what is found in it.", "Move its servers to another client.", false},

	// Its grammar
	{"SYN-BOM", Error, "a byte order mark that the client's parser refuses",
		"The whole file is not read, and some clients then write it anew without its servers.", "Save the file as UTF-8 without a byte order mark.", true},
	{"SYN-COMMENT", Error, "a comment in a file that is strict JSON to its client",
		"The whole file is not read.", "Take the comment out.", false},
	{"SYN-TRAILING-COMMA", Error, "a comma before a closing bracket, where the client's parser refuses it",
		"The whole file is not read.", "Take the comma out.", true},
	{"SYN-ESCAPE", Error, "a backslash that begins no escape of the grammar",
		"The whole file is not read.", "Double the backslashes, or write forward slashes.", true},
	{"SYN-DUPKEY", Error, "a key that is written twice in one object",
		"Programs differ in which of the two holds.", "Keep one of them.", false},
	{"SYN-INVALID", Error, "text that is not of the file's grammar",
		"The whole file is not read.", "Mend it at the place that is named.", false},
	{"KEY-CONTAINER", Error, "servers under a key that the client does not read",
		"The client starts none of them.", "Put them under the key that is read.", true},
	{"KEY-BOTH", Warning, "servers under two keys in one file",
		"Different clients read different halves of it.", "Keep one key for each client that reads the file.", false},
	{"SCOPE-DRIFT", Error, "one name for different directories in the two halves of a file",
		"The same server has another boundary in each client.", "Give both the same directories.", false},
	{"YAML-SCALAR", Warning, "a value that YAML reads as something else than it looks like",
		"What reaches the server is not what is written.", "Put the value in quotes.", false},

	// An entry
	{"KEY-FOREIGN", Warning, "a key of another client",
		"This client ignores it.", "Write the key of this client.", true},
	{"KEY-REJECTED", Error, "a key that this client refuses",
		"The client refuses the whole file.", "Take the key out.", false},
	{"ENTRY-MIX", Error, "an entry with a command and an address",
		"The client refuses it.", "Keep the one that is meant.", false},
	{"ENTRY-INVALID", Error, "an entry that the client's schema refuses",
		"The server is not started.", "Complete the entry, or take it out.", false},
	{"SHAPE-COMMAND", Error, "a command in a form that the client does not take",
		"The server is not started.", "Write the command in the client's form.", false},
	{"SHAPE-LIST", Error, "a list where the client takes a table, or a table where it takes a list",
		"The client does not read it.", "Write it in the client's form.", false},
	{"SHAPE-LEGACY", Warning, "a form that the client used earlier",
		"A later version may not read it.", "Write the form of today.", false},
	{"TYPE-SPELLING", Error, "a transport in another client's word",
		"The server is not started.", "Write this client's word.", true},
	{"TYPE-DEFAULT", Warning, "an address without a transport, where the client then takes SSE",
		"A Streamable HTTP server does not answer to that.", "Name the transport.", false},
	{"TYPE-UNSUPPORTED", Error, "a transport that this client does not have in this file",
		"The client ignores the server, or refuses the file.", "Add the server where the client takes such servers.", false},
	{"UNIT-TIMEOUT", Warning, "a time that is implausible in the client's unit, or has another name there",
		"The client waits a thousand times as long, or as short, as is meant.", "Write the time in the client's unit.", true},
	{"NAME-CHARSET", Error, "a server's name that the client refuses",
		"The client does not start with it.", "Rename the server.", false},
	{"NAME-UNDERSCORE", Warning, "an underscore in a server's name, where the client joins names with underscores",
		"Rules for its tools may then mean another server.", "Rename the server, with hyphens.", false},
	{"NAME-CLIENT-BUG", Warning, "a name that has been reported not to work in this client",
		"The server may not show up.", "Rename the server.", false},

	// Several entries of one name
	{"SCOPE-SHADOW", Warning, "one name at several levels",
		"Only one of them runs, perhaps with other directories than are read here.", "Give each its own name, or keep one.", false},
	{"SCOPE-NESTED", Warning, "one name in files of a directory and of one inside it",
		"Which one runs depends on where the client was started.", "Keep one, or give each its own name.", false},
	{"SCOPE-DUP-PROJECT", Warning, "two keys for one project that differ in how its path is written",
		"The client reads one of them, by how it was started.", "Keep the one that the client writes.", false},

	// Variables
	{"VAR-DIALECT", Error, "a variable in the way of another client",
		"It reaches the server as the text that it is.", "Write it in this client's way.", true},
	{"VAR-LITERAL", Error, "a variable where the client replaces none",
		"It reaches the server as the text that it is.", "Write the value.", false},
	{"VAR-SCOPE", Error, "a variable of the workspace in a file that holds without one",
		"Without a folder it stands for nothing, and the server is not started.", "Write a fixed directory, or move the server to the workspace's file.", false},
	{"VAR-UNSET", Warning, "a variable that is not set here and has no default",
		"The server gets the text itself or nothing, and programs started from a desktop see no shell profile.", "Set it where the client is started, or give it a default.", false},

	// Directories
	{"PATH-TILDE", Error, "a ~ that the client does not expand",
		"The server gets a directory that is called ~.", "Write the whole path.", true},
	{"PATH-RELATIVE", Warning, "a relative path",
		"It names another directory each time the client is started elsewhere.", "Write the whole path.", false},
	{"PATH-PARENT", Warning, "a path that climbs out of where it starts",
		"The server gets what surrounds the project as well.", "Write the whole path of the directory that is meant.", false},
	{"PATH-CONTROL-CHAR", Error, "a control character in a path",
		"A single backslash made it: the path names nothing.", "Double the backslashes, or write forward slashes.", true},
	{"PATH-MISSING", Warning, "a directory that is not there",
		"Most servers do not start without it, or serve nothing.", "Make it, or correct the path.", false},
	{"PATH-FILE", Warning, "a file where the server takes a directory",
		"Most servers refuse it.", "Name the directory.", false},
	{"PATH-SYMLINK", Warning, "a directory that is a link to another place",
		"The server reaches the place where the link leads, whoever sets the link.", "Write where it leads.", false},
	{"CWD-IGNORED", Error, "a working directory that the client ignores",
		"The server starts somewhere else, and its relative paths with it.", "Write whole paths in the arguments.", false},

	// Roots
	{"ROOT-NONE", Error, "a filesystem server without directories, in a client without roots",
		"It does not start, or refuses everything.", "Write the directory behind the command.", false},
	{"ROOT-EMPTY", Error, "a client that declares roots and sends none",
		"A server that waits for its roots serves nothing, or everything.", "Put rootbound run before the command: an empty list is no opinion to it.", false},
	{"ROOT-REPLACED", Warning, "directories that the client's roots replace",
		"The server drops its arguments as soon as the client sends one usable root.", "Put rootbound run before the command: then the client's list can only narrow them.", false},
	{"ROOT-BROAD", Error, "a whole disk, a home directory, or a directory of keys and configuration",
		"Every key and every configuration in it is the server's to read, and mostly to write.", "Name the directory that the work is in.", false},
	{"ROOT-HOME-CWD", Error, "a relative directory, where the client starts its servers in the home directory",
		"It is the home directory that the server gets.", "Write the whole path.", false},
	{"ROOT-MULTI", Warning, "the variable of the workspace, in one with several folders",
		"It does not say which one.", "Name the folder.", false},
	{"ROOT-FIRST-FOLDER", Warning, "the variable of the workspace, where it always means the first folder",
		"Calls for another folder go to the wrong one, and nobody is asked.", "Write the whole path, or ask for each call.", false},
	{"ROOT-STALE", Information, "a client that never says that its roots changed",
		"After a switch the server goes on with the old directory.", "Restart the server after a switch.", false},
	{"ROOT-WSL", Warning, "a path of another system than the one that the server runs on",
		"It names nothing there.", "Write the path as the system of the server has it.", false},
	{"ROOT-DEPRECATED", Information, "a server that gets its directories from the client's roots alone",
		"Roots are deprecated in MCP since 2026-07-28, and removed at the earliest on 2027-07-28.", "Write the directories in the server's configuration.", false},
	{"ROOT-KEY", Warning, "roots or capabilities in an entry, where the client ignores them",
		"They bind nobody.", "Put rootbound run with --root before the command.", true},
	{"ROOT-MISMATCH", Error, "directory arguments and roots of one entry that differ",
		"The server goes by its arguments, and who reads the roots is misled.", "Write the directories once.", false},
	{"ROOT-URI", Error, "a root that is no file URI by the letter",
		"Programs read it in different ways, or refuse the list that it is in.", "Write the URI of the whole path, percent-encoded.", true},
	{"ROOT-LEVEL", Warning, "roots at another level than the one where they are read",
		"They bind nobody.", "Write them in the entry of the server.", false},
	{"ROOT-NAME", Information, "several roots, and one of them without a name",
		"In questions and refusals it can only be told by its path.", "Give each root a name.", false},

	// Approval
	{"APPROVE-ALL", Error, "a setting that lets every call through without a question",
		"Nobody sees a write before it is made.", "Take it out, and allow single tools that only read.", false},
	{"APPROVE-WRITE", Warning, "a tool that writes, allowed for good",
		"Nobody sees the write before it is made.", "Allow the tools that only read.", false},
	{"APPROVE-TRUST", Error, "a server whose calls are never asked about",
		"Nobody sees a write before it is made.", "Take it out, and allow single tools that only read.", true},
	{"APPROVE-SANDBOX", Warning, "a sandbox that takes the place of the questions",
		"Its tools run without a question, within what the sandbox allows.", "See that the sandbox allows one directory.", false},
	{"PERM-RULE", Warning, "a rule that never matches",
		"What it says does not hold.", "Write it as the client matches it.", false},
	{"HINT-LIE", Warning, "a tool that says it only reads, and by its name or parameters writes",
		"Clients skip their question for tools that only read.", "Ask for it by name in the client, and tell its author.", false},
	{"TOOL-SHADOW", Warning, "a tool of one name in two servers of a client",
		"A model may call the one and mean the other, and a rule for the name may be for either.", "Switch one of the two off, or allow it by server and name.", false},

	// What runs
	{"SECRET-INLINE", Warning, "a credential written into the file",
		"Whoever gets the file gets it, with every backup and every commit.", "Keep it in the environment, and write its name.", false},
	{"EXEC-IN-CONFIG", Warning, "a configuration that runs a command when it is read, or an entry that is a shell script",
		"What the server gets cannot be told without running it, and is not told here.", "Write the values.", false},
	{"WRAP-SHELL", Information, "a shell between the client and the server",
		"The server is what the shell starts; that one is judged here.", "Leave the shell out where the client starts the program by itself.", false},
	{"WRAP-DEAD", Error, "a server behind a rootbound that is not there",
		"The client cannot start the server.", "Install rootbound at that place, or write the path of the one that is there.", true},
	{"PKG-SCOPE", Error, "a package written owner/name without @",
		"npx takes it for a repository of GitHub, and ends without a word where there is none.", "Write the @ before the owner.", true},
	{"PKG-VERSION", Warning, "a server of no fixed version, or of one with a known fault",
		"What runs is what the registry serves on that day, or has a fault that is public.", "Write the version behind the package's name.", false},
}
