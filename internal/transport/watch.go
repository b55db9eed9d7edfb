package transport

// WatchArgument is the only argument of this program when it has to call Watch, as the watcher of another one: on a system
// that has no shell to do it.
const WatchArgument = "__watch"
