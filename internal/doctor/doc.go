// Package doctor judges the configurations of MCP clients: what each server may touch, and what is wrong.
//
//	m := doctor.Machine{Host: host}
//	report := doctor.Examine(m, doctor.Files(m))
//	for _, f := range report.Findings {
//		fmt.Println(f.ID, f.Severity, f.File, f.Line, f.Message)
//	}
//
// What can be found is in one table, Kinds; docs/doctor.md has it for people. A finding has a place, one sentence of what
// is wrong, one of what comes of it, and one of what to write instead. Of some kinds there is also an edit that mends it
// (Fixes); nothing is written without it being asked for.
//
// Nothing that is found in a file is executed. What is printed are names, places, directories and packages; values of
// environment variables, headers and arguments are not.
//
// # Limits
//
// What a client does with its file is known as of the dates in package clientconf, and changes with its versions. A file is
// judged by what it says: what a server does with its directories, and whether a package is what its name says, is not looked
// at. A credential is found by its shape or by the name that it stands under; what has neither is taken for an ordinary value. Of
// a file with more than 1,000 servers or findings the rest is not told.
package doctor
