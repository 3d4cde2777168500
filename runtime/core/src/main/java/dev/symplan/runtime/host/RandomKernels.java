package dev.symplan.runtime.host;

import com.google.common.collect.ImmutableMap;
import dev.symplan.codegen.Choosing;
import dev.symplan.codegen.RandomSeeds;
import dev.symplan.ir.DType;
import dev.symplan.ir.TensorType;
import dev.symplan.runtime.host.HostCall.Value;
import dev.symplan.runtime.tensor.HostTensor;
import java.util.Arrays;
import java.util.List;

/**
 * Random numbers.
 *
 * <p>Ops that draw from PyTorch's generator draw here from one that is seeded by the generator that
 * it is given, a name or a state, and else by the name of the result: the same numbers in every
 * run, on every rank and in every execution of the graph, but not PyTorch's. Ops that are given a
 * seed give what Inductor's kernels make of it.
 */
final class RandomKernels {
  private RandomKernels() {}

  private interface Draw {
    double at(Philox random, long position);
  }

  static ImmutableMap<String, HostKernel> table() {
    var table = ImmutableMap.<String, HostKernel>builder();
    for (var name :
        List.of(
            "aten::rand", "aten::rand.generator", "aten::rand_like", "aten::rand_like.generator")) {
      table.put(name, call -> fill(call, Philox::uniform));
    }
    for (var name :
        List.of(
            "aten::randn",
            "aten::randn.generator",
            "aten::randn_like",
            "aten::randn_like.generator")) {
      table.put(name, call -> fill(call, Philox::normal));
    }
    for (var name :
        List.of(
            "aten::randint",
            "aten::randint.generator",
            "aten::randint.low",
            "aten::randint.low_generator",
            "aten::randint_like",
            "aten::randint_like.generator",
            "aten::randint_like.low_dtype",
            "aten::randint_like.low_generator_dtype")) {
      table.put(name, RandomKernels::integers);
    }
    for (var name : List.of("aten::randperm", "aten::randperm.generator")) {
      table.put(name, RandomKernels::permutation);
    }
    table.put("aten::bernoulli", call -> bernoulli(call, call.tensor("self")));
    table.put("aten::bernoulli.p", call -> bernoulli(call, constant(call.number("p"))));
    table.put("aten::normal_functional", call -> fill(call, normal(call)));
    table.put("aten::normal_", call -> overwrite(call, normal(call)));
    table.put("aten::uniform", call -> fill(call, uniform(call)));
    table.put("aten::uniform_", call -> overwrite(call, uniform(call)));
    table.put("aten::exponential", call -> fill(call, exponential(call)));
    table.put("aten::exponential_", call -> overwrite(call, exponential(call)));
    table.put(
        "aten::bernoulli_.float",
        call -> {
          double p = call.number("p");
          overwrite(call, (random, i) -> random.uniform(i) < p ? 1 : 0);
        });
    table.put("aten::native_dropout", RandomKernels::nativeDropout);
    table.put("aten::dropout", RandomKernels::dropout);
    table.put("aten::multinomial", RandomKernels::samples);
    table.put("prims::inductor_seed", call -> seeds(call, 1));
    table.put("prims::inductor_seeds", call -> seeds(call, call.result().type().numel()));
    table.put("prims::inductor_lookup_seed", RandomKernels::lookUp);
    table.put("prims::inductor_random", RandomKernels::seeded);
    table.put(
        "prims::inductor_randint",
        call -> integers(call, new Philox(call.tensor("seed").getLong())));
    return table.buildOrThrow();
  }

  private static Philox random(HostCall call) {
    if (!call.hasParam("generator") || !call.has("generator")) {
      return new Philox(RandomSeeds.of(call.name()));
    }
    if (!(call.value("generator") instanceof Value.Tensor(HostTensor state))) {
      return new Philox(RandomSeeds.of(call.string("generator")));
    }
    var flat = Views.flat(state);
    long seed = 0;
    for (long i = 0; i < flat.type().numel(); i++) {
      seed = RandomSeeds.mixed(seed, flat.getLong(i));
    }
    return new Philox(seed);
  }

  private static HostTensor constant(double value) {
    var tensor = HostTensor.allocate(TensorType.contiguous(DType.F64));
    tensor.set(value);
    return tensor;
  }

  private static Draw normal(HostCall call) {
    double mean = call.number("mean");
    double deviation = call.number("std");
    return (random, i) -> mean + deviation * random.normal(i);
  }

  private static Draw uniform(HostCall call) {
    double from = call.number("from");
    double width = call.number("to") - from;
    return (random, i) -> from + width * random.uniform(i);
  }

  private static Draw exponential(HostCall call) {
    double rate = call.number("lambd");
    // 1 - u is never 0.
    return (random, i) -> -Math.log1p(-random.uniform(i)) / rate;
  }

  private static void overwrite(HostCall call, Draw draw) {
    fill(call.tensor("self"), random(call), draw);
  }

  private static void fill(HostCall call, Draw draw) {
    fill(call.result(), random(call), draw);
  }

  /** The numbers are drawn in row-major order, whatever the layout is. */
  private static void fill(HostTensor result, Philox random, Draw draw) {
    var values = HostTensor.allocate(result.type().contiguous());
    var flat = Views.flat(values);
    for (long i = 0; i < flat.type().numel(); i++) {
      flat.set(draw.at(random, i), i);
    }
    result.copyFrom(values);
  }

  private static void integers(HostCall call) {
    integers(call, random(call));
  }

  private static void integers(HostCall call, Philox random) {
    long low = call.hasParam("low") ? call.integer("low") : 0;
    long high = call.integer("high");
    var values = HostTensor.allocate(call.result().type().contiguous());
    var flat = Views.flat(values);
    for (long i = 0; i < flat.type().numel(); i++) {
      flat.setLong(random.integer(i, low, high), i);
    }
    call.result().copyFrom(values);
  }

  /** In the order of random keys. */
  private static void permutation(HostCall call) {
    var result = call.result();
    var random = random(call);
    var keys = new long[Math.toIntExact(result.type().numel())];
    Arrays.setAll(keys, random::bits);
    var order = new Integer[keys.length];
    Arrays.setAll(order, i -> i);
    Arrays.sort(order, (a, b) -> Long.compareUnsigned(keys[a], keys[b]));
    for (int i = 0; i < order.length; i++) {
      result.setLong(order[i], i);
    }
  }

  private static void bernoulli(HostCall call, HostTensor probability) {
    var result = call.result();
    var uniform = HostTensor.allocate(result.type().contiguous().withDType(DType.F32));
    fill(uniform, random(call), Philox::uniform);
    Pointwise.apply(result, Pointwise.binary((u, p) -> u < p ? 1 : 0), uniform, probability);
  }

  /** {@return 1 if an element is kept} */
  private static HostTensor kept(HostCall call) {
    double p = call.number("p");
    var mask = HostTensor.allocate(call.result(0).type().contiguous().withDType(DType.BOOL));
    fill(mask, random(call), (random, i) -> random.uniform(i) >= p ? 1 : 0);
    return mask;
  }

  private static void drop(HostCall call, HostTensor mask) {
    double p = call.number("p");
    double scale = p == 1 ? 0 : 1 / (1 - p);
    Pointwise.apply(
        call.result(0),
        Pointwise.binary((x, keep) -> keep != 0 ? x * scale : 0),
        call.tensor("input"),
        mask);
  }

  private static void nativeDropout(HostCall call) {
    if (call.has("train") && !call.bool("train")) {
      call.result(0).copyFrom(call.tensor("input"));
      if (call.hasResult(1)) {
        CreationKernels.fill(call.result(1), 1);
      }
      return;
    }
    var mask = kept(call);
    drop(call, mask);
    if (call.hasResult(1)) {
      call.result(1).copyFrom(mask);
    }
  }

  private static void dropout(HostCall call) {
    drop(call, kept(call));
  }

  private static void samples(HostCall call) {
    var random = random(call);
    boolean again = call.bool("replacement");
    var next = new long[1];
    AlongDim.forEach(
        call.tensor("self").type().rank() - 1,
        List.of(call.tensor("self"), call.result()),
        rows -> {
          var weights = rows[0].load();
          var chosen = new long[rows[1].size()];
          for (int i = 0; i < chosen.length; i++) {
            int at = choose(weights, random.uniform(next[0]++));
            chosen[i] = at;
            weights[at] = again ? weights[at] : 0;
          }
          rows[1].store(chosen);
        });
  }

  private static int choose(double[] weights, double uniform) {
    int part = Math.toIntExact(Choosing.part(weights.length));
    var sums = new double[Choosing.PARTS];
    for (int i = 0; i < weights.length; i++) {
      if (!(weights[i] >= 0)) {
        throw new HostKernelException("the weight " + weights[i] + " is not a probability");
      }
      sums[i / part] += weights[i];
    }
    double total = 0;
    for (double sum : sums) {
      total += sum;
    }
    double rest = uniform * total;
    int last = -1;
    boolean inside = false;
    for (int p = 0; p < sums.length && !inside; p++) {
      if (sums[p] > 0) {
        last = p;
        inside = rest < sums[p];
        rest -= inside ? 0 : sums[p];
      }
    }
    if (last < 0) {
      throw new HostKernelException("all weights are 0");
    }
    int at = -1;
    for (int i = last * part; i < Math.min(weights.length, (last + 1) * part); i++) {
      if (weights[i] > 0) {
        at = i;
        rest -= weights[i];
        if (inside && rest < 0) {
          break;
        }
      }
    }
    return at;
  }

  private static void seeds(HostCall call, long count) {
    var random = random(call);
    var flat = Views.flat(HostTensor.allocate(call.result().type().contiguous()));
    for (long i = 0; i < count; i++) {
      flat.setLong(random.bits(i), i);
    }
    call.result().copyFrom(flat.as(call.result().type().contiguous()));
  }

  private static void lookUp(HostCall call) {
    var seeds = call.tensor("seeds");
    long index = IndexedElements.check(call.integer("index"), seeds.type().numel(), 0);
    call.result().setLong(seeds.getLong(index));
  }

  private static void seeded(HostCall call) {
    var random = new Philox(call.tensor("seed").getLong());
    switch (call.string("mode")) {
      case "rand" -> fill(call.result(), random, Philox::uniform);
      case "randn" -> fill(call.result(), random, Philox::normal);
      default -> throw new HostKernelException("unknown mode '" + call.string("mode") + "'");
    }
  }
}
