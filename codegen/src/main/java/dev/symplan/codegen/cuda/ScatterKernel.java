package dev.symplan.codegen.cuda;

import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.codegen.TensorRef;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/**
 * Adds or puts values to the elements that indices name, in the order of the indices, whichever
 * block is first.
 *
 * <p>A block has one position in the indexed dimensions, and its threads the elements of the
 * others. All look through the indices together, in pieces, for those that name the position. Where
 * there are fewer indices than positions, each index stands for the position that it names, and
 * only the first of equal ones does the work; positions that no index names are not touched.
 */
final class ScatterKernel {
  private static final int THREADS = 256;
  private static final int MAX_BLOCKS = 1 << 20;

  /** So many elements of a position a thread takes, all of them for one look at the indices. */
  private static final int MAX_ELEMENTS = 8;

  private final int rank;
  private final MemoryArguments memory = new MemoryArguments();

  private ScatterKernel(int rank) {
    this.rank = rank;
  }

  /**
   * The elements that are scattered, and their places.
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
      Optional<Long> ignored) {

    private ImmutableLongArray sizes(List<Integer> dims) {
      return ImmutableLongArray.copyOf(dims.stream().mapToLong(dim -> indexing.self().size(dim)));
    }

    /** {@return whether no index names anything} */
    boolean isEmpty() {
      return indices() == 0;
    }

    /** The positions in the indexed dimensions. */
    private long positions() {
      return numel(sizes(indexing.dims()));
    }

    private long indices() {
      return numel(indexing.common());
    }

    /** {@return whether the kernel leaves what no index names as the result has it} */
    boolean isSparse() {
      return indices() < positions();
    }
  }

  private static long numel(ImmutableLongArray sizes) {
    return sizes.stream().reduce(1, Math::multiplyExact);
  }

  /**
   * {@return a launch; if the deposit {@linkplain Deposit#isSparse is sparse}, the result must hold
   * what it does before the op}
   */
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

  private DeviceStep.Launch build(OpArguments arguments, Deposit deposit) {
    var indexing = deposit.indexing();
    var result = deposit.result();
    var dtype = result.type().dtype();
    var type = CTypes.computed(dtype);
    var indexed = deposit.sizes(indexing.dims());
    var others = deposit.sizes(indexing.rest());
    long columns = numel(others);
    long each = Math.clamp(Math.ceilDiv(columns, THREADS), 1, MAX_ELEMENTS);
    long tiles = Math.ceilDiv(columns, THREADS * each);
    long count = deposit.indices();
    boolean sparse = deposit.isSparse();
    long blocks = Math.multiplyExact(sparse ? count : deposit.positions(), tiles);
    var rest = names("c", others.length());
    var own =
        IntStream.range(0, indexing.self().rank())
            .mapToObj(
                dim ->
                    indexing.dims().contains(dim)
                        ? "r" + indexing.dims().indexOf(dim)
                        : rest.get(indexing.rest().indexOf(dim)))
            .toList();
    var common = names("j", indexing.common().length());
    var from = new ArrayList<>(rest);
    from.addAll(indexing.front(), common);
    var read = String.join(" ", indexing.read(common, this::value)).replace('\n', ' ');
    var index = declare("j", "j", indexing.common()) + " " + read;
    var condition = new ArrayList<String>();
    for (int i = 0; i < indexing.dims().size(); i++) {
      condition.add("at%s == r%s".formatted(i, i));
    }
    deposit.ignored().ifPresent(ignored -> condition.add("at0 != " + Literals.integer(ignored)));
    condition.add("true");
    var hits = String.join(" && ", condition);
    var before = sparse ? Optional.of(result) : deposit.self();
    var position =
        sparse
            ? """
                long long at[%1$s];
                {
                  long long j = owner;
                  %2$s
                  %3$s
                }
                %4$s
                bool others = false;
                for (long long other = threadIdx.x; other < owner; other += %5$s) {
                  long long j = other;
                  %2$s
                  others |= %6$s;
                }
                if (__syncthreads_or(others)) {
                  continue;
                }
            """
                .formatted(
                    Math.max(1, indexed.length()),
                    index,
                    each(indexed.length(), "at[%1$s] = at%1$s;"),
                    each(indexed.length(), "const long long r%1$s = at[%1$s];"),
                    THREADS,
                    hits)
            : "    long long row = owner;\n    %s\n".formatted(declare("row", "r", indexed));
    var text =
        """

        extern "C" __global__ void __launch_bounds__(%1$s) symplan_kernel(const __grid_constant__ Args args) {
          __shared__ int hits[%1$s];
          __shared__ unsigned found[%1$s / 32];
          for (long long block = blockIdx.x; block < %2$s; block += gridDim.x) {
            const long long owner = block / %3$s;
            const long long start = block %% %3$s * %4$s + threadIdx.x;
        %5$s    %6$s sum[%7$s];
            #pragma unroll
            for (int e = 0; e < %7$s; e++) {
              long long column = start + e * %1$s;
              sum[e] = 0;
              if (column < %8$s) {
                %9$s
                sum[e] = %10$s;
              }
            }
            for (long long first = %11$s; first < %12$s; first += %1$s) {
              bool hit = false;
              if (first + threadIdx.x < %12$s) {
                long long j = first + threadIdx.x;
                %13$s
                hit = %14$s;
              }
              const unsigned own = __ballot_sync(0xffffffffu, hit);
              found[threadIdx.x / 32] = own;
              __syncthreads();
              int count = 0;
              int before = 0;
              for (int w = 0; w < %1$s / 32; w++) {
                before = w == threadIdx.x / 32 ? count : before;
                count += __popc(found[w]);
              }
              if (hit) {
                hits[before + __popc(own & ((1u << threadIdx.x %% 32) - 1))] = threadIdx.x;
              }
              __syncthreads();
              #pragma unroll 4
              for (int k = 0; k < count; k++) {
                long long j = first + hits[k];
                %15$s
                #pragma unroll
                for (int e = 0; e < %7$s; e++) {
                  long long column = start + e * %1$s;
                  if (column < %8$s) {
                    %9$s
                    sum[e] = %16$s%17$s;
                  }
                }
              }
              __syncthreads();
            }
            #pragma unroll
            for (int e = 0; e < %7$s; e++) {
              long long column = start + e * %1$s;
              if (column < %8$s) {
                %9$s
                %18$s = %19$s;
              }
            }
          }
        }
        """
            .formatted(
                THREADS,
                blocks,
                tiles,
                THREADS * each,
                position,
                type,
                each,
                columns,
                declare("column", "c", others),
                before.map(ref -> "(%s)%s".formatted(type, value(ref, own))).orElse("0"),
                sparse ? "owner / %1$s * %1$s".formatted(THREADS) : "0",
                count,
                index,
                hits,
                declare("j", "j", indexing.common()),
                deposit.adds() ? "sum[e] + " : "",
                "(%s)%s".formatted(type, value(deposit.values(), from)),
                element(result, own),
                CTypes.narrow(dtype, "sum[e]"));
    return memory.launch(
        arguments.op().stream(),
        CTypes.PRELUDE + memory.struct() + text,
        blocks,
        MAX_BLOCKS,
        THREADS,
        arguments.op().name());
  }

  private static String each(int count, String statement) {
    return IntStream.range(0, count)
        .mapToObj(statement::formatted)
        .collect(Collectors.joining(" "));
  }

  private static List<String> names(String prefix, int count) {
    return IntStream.range(0, count).mapToObj(i -> prefix + i).toList();
  }
}
