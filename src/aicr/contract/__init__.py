"""What programs agree on: document headers, and later exit codes, sentinels and CTRF."""
