package dev.symplan.runtime.fuzz;

import com.google.common.collect.ImmutableList;
import dev.symplan.ir.Arg;
import dev.symplan.ir.DType;
import dev.symplan.ir.ProcessGroup;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.Value;
import dev.symplan.ir.op.OpDef;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Optional;
import java.util.stream.IntStream;

/** Adds collectives: every form of {@code _c10d_functional} and the planner's own, in any group. */
final class Exchanges {
  private static final String PLAIN = "_c10d_functional::";
  private static final String AUTOGRAD = "_c10d_functional_autograd::";
  private static final OpDef WAIT = Sketch.op(PLAIN + "wait_tensor");

  private final Sketch sketch;
  private final List<ProcessGroup> groups;
  private final int[] versionOf;

  /**
   * @param versionOf the version that each rank runs
   */
  Exchanges(Sketch sketch, List<ProcessGroup> groups, int[] versionOf) {
    this.sketch = sketch;
    this.groups = groups;
    this.versionOf = versionOf;
  }

  void add() {
    var group = sketch.pick(groups);
    switch (sketch.random.nextInt(15)) {
      case 0, 1, 2 -> reduce(group);
      case 3 -> reduceInPlace(group);
      case 4 -> gather(group);
      case 5 -> scatter(group);
      case 6 -> into(group);
      case 7, 8 -> exchange(group);
      case 9 -> broadcast(group);
      case 10 -> along(group);
      case 11 -> permute(group);
      case 12 -> permuteBySplits(group);
      default -> coalesced(group);
    }
  }

  private String namespace() {
    return sketch.chance(12) ? AUTOGRAD : PLAIN;
  }

  private Value operand() {
    return sketch
        .uniform(_ -> true)
        .orElseGet(() -> sketch.input(sketch.dtype(), sketch.shape(), Fill.ANY));
  }

  /** Rows that divide by the group's ranks. */
  private Value divisible(ProcessGroup group) {
    return sketch
        .uniform(t -> t.rank() > 0 && t.size(0) % group.size() == 0)
        .orElseGet(
            () ->
                sketch.input(
                    sketch.dtype(),
                    new long[] {group.size() * (long) sketch.random.nextInt(4), sketch.dim()},
                    Fill.ANY));
  }

  private Arg reduction(DType... dtypes) {
    boolean floats = true;
    boolean whole = true;
    for (var dtype : dtypes) {
      floats &= dtype.isFloat();
      whole &= !dtype.isFloat();
    }
    var names = new ArrayList<>(List.of("min", "max"));
    names.addAll(floats && sketch.exact ? List.of() : List.of("sum", "sum", "product"));
    names.addAll(floats && !sketch.exact ? List.of("avg") : List.of());
    names.addAll(whole ? List.of("band", "bor", "bxor") : List.of());
    return new Arg.Str(sketch.pick(names));
  }

  /** A group of the same ranks, perhaps under another name in each version. */
  private Arg name(ProcessGroup group, int version) {
    var same = groups.stream().filter(g -> g.members().equals(group.members())).toList();
    return new Arg.Str((version == 0 ? group : sketch.pick(same)).name());
  }

  private Optional<ImmutableList<Value>> call(String name, ProcessGroup group, Object... args) {
    var argsOf = new ArrayList<ImmutableList<Arg>>();
    for (int v = 0; v < sketch.versions; v++) {
      var own = ImmutableList.<Arg>builder();
      for (var arg : args) {
        own.add(
            arg instanceof ProcessGroup g
                ? name(g, v)
                : arg instanceof List<?> each ? (Arg) each.get(v) : (Arg) arg);
      }
      for (int i = args.length; i < Sketch.op(name).schema().params().size(); i++) {
        own.add(Arg.None.NONE);
      }
      argsOf.add(own.build());
    }
    boolean waited = sketch.chance(75);
    var made = sketch.apply(Sketch.op(name), argsOf, !waited);
    if (waited && made.isPresent()) {
      // Others may come between, so that there is something to hide the collective behind.
      for (int i = sketch.chance(30) ? 1 + sketch.random.nextInt(2) : 0; i > 0; i--) {
        sketch.apply(
            Sketch.op("aten::clone"),
            ImmutableList.of(new Arg.Ref(sketch.any()), Arg.None.NONE),
            true);
      }
      var wait = name.startsWith(AUTOGRAD) ? Sketch.op(AUTOGRAD + "wait_tensor") : WAIT;
      for (var value : made.get()) {
        sketch.apply(wait, ImmutableList.of(new Arg.Ref(value)), true);
      }
    }
    return made;
  }

  private void reduce(ProcessGroup group) {
    var value = operand();
    call(
        namespace() + "all_reduce",
        group,
        new Arg.Ref(value),
        reduction(value.tensor().dtype()),
        group);
  }

  private Value writable() {
    return sketch
        .writable(_ -> true)
        .filter(sketch::isUniform)
        .orElseGet(
            () ->
                sketch.must(
                    "aten::clone",
                    new Arg.Ref(sketch.input(sketch.dtype(), sketch.shape(), Fill.ANY)),
                    Arg.None.NONE));
  }

  private void reduceInPlace(ProcessGroup group) {
    var value = writable();
    switch (sketch.random.nextInt(3)) {
      case 0 ->
          call(
              PLAIN + "all_reduce_",
              group,
              new Arg.Ref(value),
              reduction(value.tensor().dtype()),
              group);
      case 1 ->
          call(
              PLAIN + "broadcast_",
              group,
              new Arg.Ref(value),
              new Arg.Int(sketch.random.nextInt(group.size())),
              group);
      default -> {
        var other =
            sketch.must(
                "aten::clone",
                new Arg.Ref(sketch.tensor(value.tensor().dtype(), sketch.shape())),
                Arg.None.NONE);
        call(
            PLAIN + "all_reduce_coalesced_",
            group,
            Call.refs(sketch.isUniform(other) ? List.of(value, other) : List.of(value)),
            reduction(value.tensor().dtype()),
            group);
      }
    }
  }

  private void gather(ProcessGroup group) {
    call(
        namespace() + "all_gather_into_tensor",
        group,
        new Arg.Ref(operand()),
        new Arg.Int(group.size()),
        group);
  }

  private void scatter(ProcessGroup group) {
    var value = divisible(group);
    call(
        namespace() + "reduce_scatter_tensor",
        group,
        new Arg.Ref(value),
        reduction(value.tensor().dtype()),
        new Arg.Int(group.size()),
        group);
  }

  private void into(ProcessGroup group) {
    var size = new Arg.Int(group.size());
    if (sketch.chance(50)) {
      var value = operand();
      var type = value.tensor();
      var sizes = type.rank() == 0 ? new long[] {1} : type.sizes().toArray();
      sizes[0] *= group.size();
      outOf(type.dtype(), sizes)
          .ifPresent(
              out ->
                  call(
                      PLAIN + "all_gather_into_tensor_out",
                      group,
                      new Arg.Ref(value),
                      size,
                      group,
                      new Arg.Ref(out)));
    } else {
      var value = divisible(group);
      var type = value.tensor();
      var sizes = type.sizes().toArray();
      sizes[0] /= group.size();
      outOf(type.dtype(), sizes)
          .ifPresent(
              out ->
                  call(
                      PLAIN + "reduce_scatter_tensor_out",
                      group,
                      new Arg.Ref(value),
                      reduction(type.dtype()),
                      size,
                      group,
                      new Arg.Ref(out)));
    }
  }

  private Optional<Value> outOf(DType dtype, long[] sizes) {
    var like = sketch.tensor(dtype, sizes);
    if (!sketch.isUniform(like) || like.tensor().numel() > 200) {
      return Optional.empty();
    }
    return Optional.of(
        sketch.chance(40) && sketch.isWritable(like)
            ? like
            : sketch.must("aten::clone", new Arg.Ref(like), Arg.None.NONE));
  }

  /** Slices along any dimension. */
  private void along(ProcessGroup group) {
    var sizes = new long[1 + sketch.random.nextInt(3)];
    Arrays.setAll(sizes, _ -> sketch.dim());
    int dim = sketch.random.nextInt(sizes.length);
    var other = new Arg.Int(sketch.random.nextInt(sizes.length));
    var size = new Arg.Int(group.size());
    int kind = sketch.random.nextInt(3);
    if (kind > 0) {
      sizes[dim] *= group.size();
    }
    var dtype = sketch.dtype();
    var value = new Arg.Ref(sketch.input(dtype, sizes, Fill.ANY));
    var at = new Arg.Int(dim);
    switch (kind) {
      case 0 -> call("symplan::all_gather_dim", group, value, at, size, group);
      case 1 ->
          call(
              "symplan::reduce_scatter_dim",
              group,
              value,
              reduction(dtype),
              at,
              size,
              group,
              Arg.None.NONE,
              widened(dtype, group));
      default -> call("symplan::all_to_all_dim", group, value, at, other, size, group);
    }
  }

  /** The type that elements are reduced in, if another than their own. */
  private Arg widened(DType dtype, ProcessGroup group) {
    return (dtype == DType.BF16 || dtype == DType.F16) && group.size() > 1 && sketch.chance(50)
        ? new Arg.Dtype(DType.F32)
        : Arg.None.NONE;
  }

  private void broadcast(ProcessGroup group) {
    call(
        namespace() + "broadcast",
        group,
        new Arg.Ref(operand()),
        new Arg.Int(sketch.random.nextInt(group.size())),
        group);
  }

  private void coalesced(ProcessGroup group) {
    var values = new ArrayList<Value>();
    int count = 1 + sketch.random.nextInt(3);
    int kind = sketch.random.nextInt(3);
    for (int i = 0; i < count; i++) {
      values.add(kind == 2 ? divisible(group) : operand());
    }
    var dtype = values.getFirst().tensor().dtype();
    // NCCL's groups, as PyTorch's, take tensors of one type.
    values.removeIf(v -> v.tensor().dtype() != dtype);
    var size = new Arg.Int(group.size());
    switch (kind) {
      case 0 ->
          call(
              namespace() + "all_reduce_coalesced",
              group,
              Call.refs(values),
              reduction(dtype),
              group);
      case 1 ->
          call(
              namespace() + "all_gather_into_tensor_coalesced",
              group,
              Call.refs(values),
              size,
              group);
      default -> {
        var widened = widened(dtype, group);
        if (widened == Arg.None.NONE) {
          call(
              namespace() + "reduce_scatter_tensor_coalesced",
              group,
              Call.refs(values),
              reduction(dtype),
              size,
              group);
        } else {
          call(
              "symplan::reduce_scatter_coalesced",
              group,
              Call.refs(values),
              reduction(dtype),
              size,
              group,
              widened);
        }
      }
    }
  }

  private void exchange(ProcessGroup group) {
    var pattern = pattern(group);
    if (pattern.isEmpty() || sketch.chance(25)) {
      var value = divisible(group);
      var none = Call.list();
      long rows = value.tensor().size(0) / group.size();
      var equal =
          Call.list(Collections.nCopies(group.size(), rows).stream().mapToLong(r -> r).toArray());
      call(
          namespace() + "all_to_all_single",
          group,
          new Arg.Ref(value),
          sketch.chance(50) ? none : equal,
          sketch.chance(50) ? none : equal,
          group);
      return;
    }
    // Rows that a rank of one version sends to one of another.
    var rows = new long[sketch.versions][sketch.versions];
    for (var row : rows) {
      Arrays.setAll(row, i -> sketch.random.nextInt(4));
    }
    var sent = new ArrayList<Arg>();
    var taken = new ArrayList<Arg>();
    var types = new ArrayList<TensorType>();
    long columns = sketch.dim();
    var dtype = sketch.dtype();
    for (int v = 0; v < sketch.versions; v++) {
      int version = v;
      var sends = pattern.get().stream().mapToLong(peer -> rows[version][peer]).toArray();
      sent.add(Call.list(sends));
      taken.add(Call.list(pattern.get().stream().mapToLong(peer -> rows[peer][version]).toArray()));
      types.add(TensorType.contiguous(dtype, Arrays.stream(sends).sum(), columns));
    }
    call(
        namespace() + "all_to_all_single",
        group,
        new Arg.Ref(sketch.input(types, Fill.ANY)),
        List.copyOf(taken),
        List.copyOf(sent),
        group);
  }

  /** The target of each rank. */
  private List<Integer> targets(ProcessGroup group) {
    var targets = new ArrayList<>(IntStream.range(0, group.size()).boxed().toList());
    Collections.shuffle(targets, sketch.random);
    return targets;
  }

  private void permute(ProcessGroup group) {
    var targets = targets(group);
    var pairs = ImmutableList.<Arg>builder();
    for (int source = 0; source < group.size(); source++) {
      if (sketch.chance(75)) {
        pairs.add(Call.list(source, targets.get(source)));
      }
    }
    call(
        "symplan::collective_permute",
        group,
        new Arg.Ref(operand()),
        new Arg.Seq(pairs.build()),
        group);
  }

  /** PyTorch's lowering of permute_tensor, which takes a graph for each rank. */
  private void permuteBySplits(ProcessGroup group) {
    var pattern = pattern(group);
    if (pattern.isEmpty() || pattern.get().stream().distinct().count() < group.size()) {
      exchange(group);
      return;
    }
    var targets = targets(group);
    long rows = 1 + sketch.random.nextInt(3);
    var sent = new ArrayList<Arg>();
    var taken = new ArrayList<Arg>();
    for (int v = 0; v < sketch.versions; v++) {
      int self = pattern.get().indexOf(v);
      var sends = new long[group.size()];
      var takes = new long[group.size()];
      if (self >= 0) {
        sends[targets.get(self)] = rows;
        takes[targets.indexOf(self)] = rows;
      }
      sent.add(Call.list(sends));
      taken.add(Call.list(takes));
    }
    call(
        namespace() + "all_to_all_single",
        group,
        new Arg.Ref(sketch.input(sketch.dtype(), new long[] {rows, sketch.dim()}, Fill.ANY)),
        List.copyOf(taken),
        List.copyOf(sent),
        group);
  }

  /** The versions of the ranks of a part, if all parts have the same. */
  private Optional<List<Integer>> pattern(ProcessGroup group) {
    if (sketch.versions == 1) {
      return Optional.empty();
    }
    var patterns =
        group.members().stream()
            .map(part -> part.stream().mapToObj(rank -> versionOf[rank]).toList())
            .distinct()
            .toList();
    return patterns.size() == 1 ? Optional.of(patterns.getFirst()) : Optional.empty();
  }
}
