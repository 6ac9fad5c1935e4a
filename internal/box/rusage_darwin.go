package box

// maxRSSUnit is what ru_maxrss counts, in bytes (getrusage(2) of macOS).
const maxRSSUnit = 1
