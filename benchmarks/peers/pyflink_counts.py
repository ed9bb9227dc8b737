"""PyFlink: the same counts as DataStream jobs of parallelism 2, a checkpoint each second."""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from pyflink.common import Configuration, Types, WatermarkStrategy
from pyflink.datastream import StreamExecutionEnvironment
from pyflink.datastream.connectors.number_seq import NumberSequenceSource
from pyflink.datastream.functions import FlatMapFunction, KeyedProcessFunction, RuntimeContext
from pyflink.datastream.state import ValueStateDescriptor

WORD_OF = tuple(f"word{i * 7919 % 1000}" for i in range(1000))

class BatchCount(FlatMapFunction):
    def __init__(self, B, d):
        self.B=B; self.d=d
    def open(self, c):
        self.count=0; self.i=c.get_index_of_this_subtask(); self.begun=0
    def flat_map(self, n):
        if not self.begun:
            self.begun=time.monotonic()
            Path(self.d, f"begun-{self.i}").write_text(str(self.begun))
        self.count+=1
        if n % self.B == self.B-1:
            yield n//self.B+1, self.count
            self.count=0

class Commit(KeyedProcessFunction):
    def __init__(self, d): self.d=d
    def open(self, c):
        self.s=c.get_state(ValueStateDescriptor("s", Types.PICKLED_BYTE_ARRAY()))
    def process_element(self, v, ctx):
        count, _ = self.s.value() or (0,0)
        self.s.update((count+v[1], v[0]))
        Path(self.d,"commit").write_text(json.dumps([count+v[1], time.monotonic()]))
        return []
class Words(KeyedProcessFunction):
    def __init__(self, d): self.d=d
    def open(self, c):
        self.s=c.get_state(ValueStateDescriptor("s", Types.LONG())); self.i=c.get_index_of_this_subtask()
        self.f=open(Path(self.d, f"counts-{self.i}"),"w")
    def process_element(self, v, ctx):
        count = self.s.value()
        if count is None:
            ctx.timer_service().register_event_time_timer((1<<63)-1)
            count=0
        self.s.update(count+1)
        return []
    def on_timer(self, ts, ctx):
        self.f.write(json.dumps([ctx.get_current_key(), self.s.value(), time.monotonic()])+"\n"); self.f.flush()
        return []
class Mark:
    pass
def toword(d):
    def f(n):
        return WORD_OF[n%1000]
    return f
mode, work, batches = sys.argv[1], sys.argv[2], int(sys.argv[3])
extra = dict(a.split("=") for a in sys.argv[4:])
with tempfile.TemporaryDirectory() as d:
    conf=Configuration()
    for k,v in {"python.execution-mode":mode,"python.executable":sys.executable,"python.client.executable":sys.executable,"rest.port":"0","execution.checkpointing.interval":"1s","execution.checkpointing.dir":f"file://{d}/cp","io.tmp.dirs":d, **extra}.items(): conf.set_string(k,v)
    t0=time.monotonic()
    env=StreamExecutionEnvironment.get_execution_environment(conf)
    env.set_parallelism(2)
    N=batches*100000
    ns=env.from_source(NumberSequenceSource(0,N-1), WatermarkStrategy.no_watermarks(), "n")
    if work=="global":
        ns.flat_map(BatchCount(100000,d), Types.TUPLE([Types.LONG(),Types.LONG()])).key_by(lambda v: 0, Types.INT()).process(Commit(d)).set_parallelism(1)
    else:
        ns.map(toword(d), Types.STRING()).key_by(lambda w: w, Types.STRING()).process(Words(d))
    print("built", time.monotonic()-t0)
    t1=time.monotonic()
    env.execute("x")
    t2=time.monotonic()
    print("exec", t2-t1)
    if work=="global":
        c,t=json.loads(Path(d,"commit").read_text()); b=min(float(p.read_text()) for p in Path(d).glob("begun*"))
        assert c==N
        print(mode,work,"rate",N/(t-b), t-b, "to begin", b-t1)
    else:
        r=[json.loads(l) for p in Path(d).glob("counts*") for l in p.read_text().splitlines()]
        print(mode, work, sum(x[1] for x in r), N, "rate incl. start", N/(max(x[2] for x in r)-t1))
