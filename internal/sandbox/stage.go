package sandbox

// Argument is the only argument of this program when it is a stage: it has to call Enter then.
const Argument = "__confine"
