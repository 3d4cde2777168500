import os, sys, torch, torch.distributed as dist, torch.distributed._symmetric_memory as sm
rank=int(os.environ['RANK']); n=int(os.environ['WORLD_SIZE'])
torch.cuda.set_device(rank); dist.init_process_group('nccl', device_id=torch.device('cuda',rank))
g=dist.group.WORLD.group_name
def timed(f, times):
    s=torch.cuda.Stream()
    with torch.cuda.stream(s):
        for _ in range(3): f()
    torch.cuda.synchronize(); dist.barrier()
    graph=torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=s):
        for _ in range(times): f()
    for _ in range(2): graph.replay()
    torch.cuda.synchronize(); dist.barrier()
    a=torch.cuda.Event(enable_timing=True); b=torch.cuda.Event(enable_timing=True)
    a.record()
    for _ in range(10): graph.replay()
    b.record(); torch.cuda.synchronize()
    t=torch.tensor([a.elapsed_time(b)*1000/10/times], device='cuda'); dist.all_reduce(t, op=dist.ReduceOp.MAX)
    return t.item()
for size in map(int, sys.argv[1:]):
    e=size//2; times=5 if size > 8<<20 else 20
    x=sm.empty(e, dtype=torch.bfloat16, device='cuda'); x.fill_(0.01*rank); sm.rendezvous(x, g)
    p=torch.full((e,),0.01,dtype=torch.bfloat16,device='cuda'); big=torch.empty(e*n,dtype=torch.bfloat16,device='cuda'); part=torch.empty(e//n,dtype=torch.bfloat16,device='cuda')
    rows=[('all_reduce','torch_one_shot',lambda: torch.ops.symm_mem.one_shot_all_reduce(x,'sum',g)),
          ('all_reduce','torch_two_shot',lambda: torch.ops.symm_mem.two_shot_all_reduce_(x,'sum',g)),
          ('all_reduce','torch_nccl',lambda: dist.all_reduce(p)),
          ('all_gather','torch_nccl',lambda: dist.all_gather_into_tensor(big,p)),
          ('reduce_scatter','torch_nccl',lambda: dist.reduce_scatter_tensor(part,p))]
    for kind,name,f in rows:
        try: t=timed(f,times)
        except Exception as ex: t=float('nan'); print(str(ex)[:200]) if rank==0 else None
        if rank==0: print(f'{kind},{name},bf16,{size},{n},{t:.2f}',flush=True)
os._exit(0)
