package box

// maxRSSUnit is what ru_maxrss counts, in bytes (getrusage(2)).
const maxRSSUnit = 1 << 10
