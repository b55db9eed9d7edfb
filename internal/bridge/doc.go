// Package bridge joins a client and a server that speak different eras. It is the only code that knows both.
//
//	up := bridge.NewUp(statelessServer)     // for handshake clients
//	down := bridge.NewDown(handshakeServer) // for stateless clients
//
// Each is a handler in front of the server's edge, and is put in when the server has refused the client's era. Greet finds
// out whether it takes the other one, and says there what that era says once; Handle is for everything after it. Stages
// stand in front of a bridge: they see the client's words, and one execution of a request that was tried several times.
//
// # Limits
//
// The stateless era has no word for an error that a client answers to a question: to an elicitation it becomes a cancel,
// everything else fails the request. The handshake era has none for which request a log message or a question belongs to:
// on a stream it goes to the oldest open request that can carry it. Tasks do not cross.
package bridge
