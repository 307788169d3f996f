"""The programs that the webhook injects: each tests GPUs or links, sends events, and exits with its code.

```
exit_codes   codes and what they mean; STORE_ONLY   environment*   variables, log, processes, GPUs
dcgm/        preflight-dcgm-diag                    loopback*      preflight-nccl-loopback
```

A program is a function over ports (`run(settings, ports) -> Outcome`) and a thin `main` that wires the
real ones, so that the command line and tests run the same thing. "Could not test" is never fatal and
blames no node (decision 19): only what a test found on a GPU or a link is.
Source: preflight specification 6 and 7.
"""
