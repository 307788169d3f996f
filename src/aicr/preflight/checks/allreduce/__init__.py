"""preflight-nccl-allreduce: a bandwidth test over the whole gang, and which node or link is to blame.

```
 gang.py      wait for the mounted gang ConfigMap            exit 2, 3: never masked by STORE_ONLY
 board.py     meet the other nodes at rank 0's address
 launch.py    one worker for each GPU, watched
 worker.py    torch.distributed: the benchmark               the only module that imports torch, with
 probing.py   what localise.py asks, measured                board.py
 questions.py what is asked and heard of a gang that is too slow; groups, budget
 verdict.py   reports of all nodes → events, exit code       exit 1, 4
```

Nobody is blamed for a slow gang as such: `localise` plans disjoint subgroups, and only a node that is slow
with every sound partner gets a fatal event, from itself (decisions 19, 20, 77).
Source: preflight specification 7.2 and 7.3.
"""
