module github.com/openrnic/openrnic

go 1.24.0
