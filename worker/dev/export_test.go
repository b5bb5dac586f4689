package dev

// ProcessesWith lets tests see what is left running.
var ProcessesWith = processesWith
