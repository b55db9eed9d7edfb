// Package approval holds questions until a person answers or time ends, keeps what was granted, and tells those who look what a
// guard is at the moment.
//
// A Desk holds the questions of one guard. Whoever answers first has answered: a client that was asked, or a person in a
// terminal, who reaches the desk over a local socket.
//
//	desk := approval.NewDesk(approval.DeskOptions{})
//	board := approval.NewBoard(nil)
//	door, err := approval.Listen(approval.DoorOptions{Dir: dir, Server: "files", Desk: desk, Board: board, Report: report})
//	defer door.Close() // a socket, and a file that says where and with which token
//	desk.Ask(ctx, approval.Call{Question: q, Key: key, Answered: func(a approval.Answer) { … }})
//
// and on the other side
//
//	guards, err := approval.Find(dir)
//	err = guards[0].Answer(ctx, "c7f3a2", approval.Reply{Choice: approval.Choice{Allow: true}})
//	approval.Watch(ctx, dir, func(e approval.Event) { … })        // questions, and what each guard is Now, as they change
//
// A yes that is good for more than one call is a Grant; all are in one file, which guards follow.
//
// The zero Answer, the zero Choice and the zero Grant allow nothing.
//
// # Limits
//
// Who answers is known by the process that connects: its user and its number. Any program of the same user can read the
// token and answer, such as a server that is not confined and gets another program to do it. What descends from a guard is
// refused where the system says who connects and what it descends from: on Linux; on macOS as long as its parents live.
//
// What a guard is now, its command and its roots, is told to whoever may answer, and by a door that is Closed too.
//
// A client that is asked may let something else than a person answer. The log says by which road an answer came.
package approval
