package dev.symplan.codegen.cuda;

import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.codegen.TensorRef;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.stream.IntStream;

/**
 * Adds or puts values to the elements that indices name, in the order of the indices, whichever
 * block is first.
 *
 * <p>A block has one index of the indexed dimensions, and its threads the elements of the others.
 * All look through the indices together, in pieces; most have none that matches.
 */
final class ScatterKernel {
  private static final int THREADS = 256;
  private static final int MAX_BLOCKS = 1 << 20;

  private final int rank;
  private final MemoryArguments memory = new MemoryArguments();

  private ScatterKernel(int rank) {
    this.rank = rank;
  }

  /**
   * What goes where.
   *
   * @param self the result before the op; absent means zero
   * @param values of the shape of what is indexed
   * @param adds rather than replaces
   * @param ignored an index of the first dimension whose values are left out
   */
  record Deposit(
      Optional<TensorRef> self,
      Indexing indexing,
      TensorRef values,
      TensorRef result,
      boolean adds,
      Optional<Long> ignored) {}

  static DeviceStep.Launch launch(int rank, OpArguments arguments, Deposit deposit) {
    arguments.checkComputes(deposit.result());
    arguments.checkComputes(deposit.values());
    return new ScatterKernel(rank).build(arguments, deposit);
  }

  private String element(TensorRef ref, List<String> indices) {
    return memory.element(
        CTypes.stored(ref.type().dtype()),
        KernelArgument.Memory.of(rank, ref),
        Indices.offset(ref.type(), indices));
  }

  private String value(TensorRef ref, List<String> indices) {
    return CTypes.widen(ref.type().dtype(), element(ref, indices));
  }

  /** On one line, as it is in a template. */
  private static String declare(String from, String prefix, ImmutableLongArray sizes) {
    return Indices.of("", "[[maybe_unused]] const long long " + prefix, from, sizes)
        .replace('\n', ' ');
  }

  private static ImmutableLongArray sizes(Indexing indexing, List<Integer> dims) {
    return ImmutableLongArray.copyOf(dims.stream().mapToLong(dim -> indexing.self().size(dim)));
  }

  private DeviceStep.Launch build(OpArguments arguments, Deposit deposit) {
    var indexing = deposit.indexing();
    var result = deposit.result();
    var dtype = result.type().dtype();
    var type = CTypes.computed(dtype);
    var indexed = sizes(indexing, indexing.dims());
    var others = sizes(indexing, indexing.rest());
    long rows = indexed.stream().reduce(1, Math::multiplyExact);
    long columns = others.stream().reduce(1, Math::multiplyExact);
    long tiles = Math.ceilDiv(columns, THREADS);
    long count = indexing.common().stream().reduce(1, Math::multiplyExact);
    var common = names("j", indexing.common().length());
    var rest = names("c", others.length());
    var own =
        IntStream.range(0, indexing.self().rank())
            .mapToObj(
                dim ->
                    indexing.dims().contains(dim)
                        ? "r" + indexing.dims().indexOf(dim)
                        : rest.get(indexing.rest().indexOf(dim)))
            .toList();
    var from = new ArrayList<>(rest);
    from.addAll(indexing.front(), common);
    var matches = new StringBuilder();
    indexing
        .read(common, this::value)
        .forEach(line -> matches.append("          ").append(line).append('\n'));
    var condition = new ArrayList<String>();
    for (int i = 0; i < indexing.dims().size(); i++) {
      condition.add("at%s == r%s".formatted(i, i));
    }
    deposit.ignored().ifPresent(index -> condition.add("at0 != " + Literals.integer(index)));
    condition.add("true");
    var summand = "(%s)%s".formatted(type, value(deposit.values(), from));
    var before = deposit.self().map(ref -> "(%s)%s".formatted(type, value(ref, own))).orElse("0");
    var text =
        """

        extern "C" __global__ void __launch_bounds__(%1$s) symplan_kernel(const __grid_constant__ Args args) {
          __shared__ unsigned char hits[%1$s];
          for (long long block = blockIdx.x; block < %2$s; block += gridDim.x) {
            long long row = block / %3$s;
            long long column = block %% %3$s * %1$s + threadIdx.x;
            const bool inside = column < %4$s;
            %5$s
            %6$s
            %7$s sum = 0;
            if (inside) {
              sum = %8$s;
            }
            for (long long first = 0; first < %9$s; first += %1$s) {
              bool hit = false;
              if (first + threadIdx.x < %9$s) {
                long long j = first + threadIdx.x;
                %10$s
        %11$s          hit = %12$s;
              }
              hits[threadIdx.x] = hit;
              if (__syncthreads_or(hit)) {
                for (int k = 0; inside && k < %1$s; k++) {
                  if (hits[k]) {
                    long long j = first + k;
                    %10$s
                    sum = %13$s%14$s;
                  }
                }
              }
              __syncthreads();
            }
            if (inside) {
              %15$s = %16$s;
            }
          }
        }
        """
            .formatted(
                THREADS,
                rows * tiles,
                tiles,
                columns,
                declare("row", "r", indexed),
                declare("column", "c", others),
                type,
                before,
                count,
                declare("j", "j", indexing.common()),
                matches,
                String.join(" && ", condition),
                deposit.adds() ? "sum + " : "",
                summand,
                element(result, own),
                CTypes.narrow(dtype, "sum"));
    return memory.launch(
        arguments.op().stream(),
        CTypes.PRELUDE + memory.struct() + text,
        rows * tiles,
        MAX_BLOCKS,
        THREADS,
        arguments.op().name());
  }

  private static List<String> names(String prefix, int count) {
    return IntStream.range(0, count).mapToObj(i -> prefix + i).toList();
  }
}
