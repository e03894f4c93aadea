module tributary.dev/lab/binaries/pause

go 1.24
