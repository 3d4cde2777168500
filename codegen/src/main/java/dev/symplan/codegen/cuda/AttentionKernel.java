package dev.symplan.codegen.cuda;

import dev.symplan.codegen.TensorRef;
import dev.symplan.codegen.cuda.AttentionLowering.Problem;
import dev.symplan.codegen.cuda.AttentionLowering.Saved;
import dev.symplan.ir.DType;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/**
 * The kernels of scaled dot-product attention.
 *
 * <p>A block has one row of queries, whose softmax goes along while keys go by (Milakov and
 * Gimelshein 2018), so that scores are never in memory. Gradients are those of FlashAttention (Dao
 * et al. 2022), a block for each row of queries and one for each of keys: nothing is added up in an
 * order that differs from run to run. All is computed in f32 (f64 for f64). It is made to be right
 * rather than fast: no tensor cores.
 */
final class AttentionKernel {
  private static final int THREADS = 128;
  private static final int MAX_BLOCKS = 1 << 20;

  /** The text that all kernels begin with. */
  private static final String COMMON =
      """

      typedef $T Sum;

      __device__ __forceinline__ Sum larger(Sum a, Sum b) {
        return b > a || b != b ? b : a;
      }

      /** The sum, or the largest, of what all threads of the block have. */
      template <bool LARGEST>
      __device__ Sum united(Sum value, Sum* shared) {
        for (int d = 16; d > 0; d /= 2) {
          Sum other = __shfl_xor_sync(0xffffffffu, value, d);
          value = LARGEST ? larger(value, other) : value + other;
        }
        if (threadIdx.x % 32 == 0) {
          shared[threadIdx.x / 32] = value;
        }
        __syncthreads();
        value = shared[0];
        for (int w = 1; w < $THREADS / 32; w++) {
          value = LARGEST ? larger(value, shared[w]) : value + shared[w];
        }
        __syncthreads();
        return value;
      }

      __device__ Sum score(const Args& args, long long b, long long h, long long q, long long k) {
        if ($CAUSAL && k > q) {
          return -$INFINITY;
        }
        Sum sum = 0;
        for (int d = 0; d < $FEATURES; d++) {
          sum += (Sum)$QUERY[d] * (Sum)$KEY[d];
        }
        sum = sum * $SCALE;
        $BIAS
        return sum;
      }
      """;

  private static final String FORWARD =
      """

      extern "C" __global__ void __launch_bounds__($THREADS) symplan_kernel(const __grid_constant__ Args args) {
        __shared__ Sum shared[$THREADS / 32];
        __shared__ Sum weights[$THREADS];
        for (long long row = blockIdx.x; row < $BLOCKS; row += gridDim.x) {
          const long long q = row % $ROWS;
          const long long h = row / $ROWS % $HEADS;
          const long long b = row / $ROWS / $HEADS;
          Sum out[$PARTS] = {};
          Sum most = -$INFINITY;
          Sum sum = 0;
          for (long long first = 0; first < $COLUMNS && !($CAUSAL && first > q); first += $THREADS) {
            const long long own = first + threadIdx.x;
            Sum scored = own < $COLUMNS ? score(args, b, h, q, own) : -$INFINITY;
            Sum next = larger(most, united<true>(scored, shared));
            Sum weight = next == -$INFINITY ? 0 : exp(scored - next);
            Sum factor = next == -$INFINITY ? 1 : exp(most - next);
            weights[threadIdx.x] = weight;
            sum = sum * factor + united<false>(weight, shared);
            most = next;
            const int count = $COLUMNS - first < $THREADS ? $COLUMNS - first : $THREADS;
            for (int i = 0; i < $PARTS; i++) {
              const int d = threadIdx.x + i * $THREADS;
              if (d < $WIDTH) {
                Sum part = out[i] * factor;
                for (int j = 0; j < count; j++) {
                  const long long k = first + j;
                  part += weights[j] * (Sum)$VALUE[d];
                }
                out[i] = part;
              }
            }
            __syncthreads();
          }
          for (int i = 0; i < $PARTS; i++) {
            const int d = threadIdx.x + i * $THREADS;
            if (d < $WIDTH) {
              $STORE_OUT
            }
          }
          $STORE_LOG
        }
      }
      """;

  private static final String GRADIENT_OF_QUERIES =
      """

      extern "C" __global__ void __launch_bounds__($THREADS) symplan_kernel(const __grid_constant__ Args args) {
        __shared__ Sum shared[$THREADS / 32];
        __shared__ Sum slopes[$THREADS];
        for (long long row = blockIdx.x; row < $BLOCKS; row += gridDim.x) {
          const long long q = row % $ROWS;
          const long long h = row / $ROWS % $HEADS;
          const long long b = row / $ROWS / $HEADS;
          Sum own_part = 0;
          for (int d = threadIdx.x; d < $WIDTH; d += $THREADS) {
            own_part += (Sum)$GRAD[d] * (Sum)$OUT[d];
          }
          const Sum delta = united<false>(own_part, shared);
          const Sum log_sum = $LOG;
          Sum slope_of_query[$PARTS] = {};
          for (long long first = 0; first < $COLUMNS; first += $THREADS) {
            const long long k = first + threadIdx.x;
            Sum slope = 0;
            if (k < $COLUMNS) {
              const Sum scored = score(args, b, h, q, k);
              if (scored != -$INFINITY) {
                Sum product = 0;
                for (int d = 0; d < $WIDTH; d++) {
                  product += (Sum)$GRAD[d] * (Sum)$VALUE[d];
                }
                slope = exp(scored - log_sum) * (product - delta);
              }
              $STORE_BIAS
            }
            slopes[threadIdx.x] = slope;
            __syncthreads();
            const int count = $COLUMNS - first < $THREADS ? $COLUMNS - first : $THREADS;
            for (int i = 0; i < $PARTS; i++) {
              const int d = threadIdx.x + i * $THREADS;
              if (d < $FEATURES) {
                Sum part = slope_of_query[i];
                for (int j = 0; j < count; j++) {
                  const long long k = first + j;
                  part += slopes[j] * (Sum)$KEY[d];
                }
                slope_of_query[i] = part;
              }
            }
            __syncthreads();
          }
          for (int i = 0; i < $PARTS; i++) {
            const int d = threadIdx.x + i * $THREADS;
            if (d < $FEATURES) {
              $STORE_QUERY
            }
          }
        }
      }
      """;

  private static final String GRADIENTS_OF_KEYS =
      """

      extern "C" __global__ void __launch_bounds__($THREADS) symplan_kernel(const __grid_constant__ Args args) {
        __shared__ Sum weights[$THREADS];
        __shared__ Sum slopes[$THREADS];
        for (long long row = blockIdx.x; row < $BLOCKS; row += gridDim.x) {
          const long long k = row % $COLUMNS;
          const long long shared_head = row / $COLUMNS % ($HEADS / $GROUP);
          const long long b = row / $COLUMNS / ($HEADS / $GROUP);
          Sum slope_of_key[$PARTS] = {};
          Sum slope_of_value[$PARTS] = {};
          for (long long h = shared_head * $GROUP; h < (shared_head + 1) * $GROUP; h++) {
            for (long long first = 0; first < $ROWS; first += $THREADS) {
              Sum weight = 0;
              Sum slope = 0;
              const long long own = first + threadIdx.x;
              if (own < $ROWS) {
                const long long q = own;
                const Sum scored = score(args, b, h, q, k);
                if (scored != -$INFINITY) {
                  Sum product = 0;
                  Sum delta = 0;
                  for (int d = 0; d < $WIDTH; d++) {
                    product += (Sum)$GRAD[d] * (Sum)$VALUE[d];
                    delta += (Sum)$GRAD[d] * (Sum)$OUT[d];
                  }
                  weight = exp(scored - $LOG);
                  slope = weight * (product - delta);
                }
              }
              weights[threadIdx.x] = weight;
              slopes[threadIdx.x] = slope;
              __syncthreads();
              const int count = $ROWS - first < $THREADS ? $ROWS - first : $THREADS;
              for (int i = 0; i < $PARTS; i++) {
                const int d = threadIdx.x + i * $THREADS;
                for (int j = 0; j < count; j++) {
                  const long long q = first + j;
                  if (d < $FEATURES) {
                    slope_of_key[i] += slopes[j] * (Sum)$QUERY[d];
                  }
                  if (d < $WIDTH) {
                    slope_of_value[i] += weights[j] * (Sum)$GRAD[d];
                  }
                }
              }
              __syncthreads();
            }
          }
          for (int i = 0; i < $PARTS; i++) {
            const int d = threadIdx.x + i * $THREADS;
            if (d < $FEATURES) {
              $STORE_KEY
            }
            if (d < $WIDTH) {
              $STORE_VALUE
            }
          }
        }
      }
      """;

  private final Problem problem;
  private final MemoryArguments memory = new MemoryArguments();
  private final long blocks;

  /** The text that each name of the templates stands for. */
  private final Map<String, String> texts = new LinkedHashMap<>();

  private AttentionKernel(Problem problem, long blocks) {
    var query = problem.query().type();
    var value = problem.value().type();
    this.problem = problem;
    this.blocks = blocks;
    put("$BLOCKS", blocks);
    put("$THREADS", THREADS);
    put("$ROWS", query.size(2));
    put("$COLUMNS", problem.key().type().size(2));
    put("$HEADS", query.size(1));
    put("$GROUP", problem.group());
    put("$FEATURES", query.size(3));
    put("$WIDTH", value.size(3));
    put("$PARTS", Math.max(1, Math.ceilDiv(Math.max(query.size(3), value.size(3)), THREADS)));
    put("$CAUSAL", problem.causal());
    put("$INFINITY", infinity());
    put("$SCALE", Literals.floating(problem.scale(), problem.wide()));
    put("$T", problem.wide() ? "double" : "float");
    row("$QUERY", problem.query(), "b", "h", "q");
    row("$KEY", problem.key(), "b", "h / " + problem.group(), "k");
    row("$VALUE", problem.value(), "b", "h / " + problem.group(), "k");
    put("$BIAS", problem.bias().map(this::biased).orElse(""));
  }

  /**
   * {@return a launch that computes attention}
   *
   * @param logs where the logarithm of each row's sum goes
   */
  static DeviceStep.Launch forward(Problem problem, TensorRef out, Optional<TensorRef> logs) {
    var kernel = new AttentionKernel(problem, rows(out));
    kernel.store("$STORE_OUT", out, "b", "h", "q", "(sum == 0 ? 0 : out[i] / sum)");
    var log = "(sum == 0 ? %s : most + log(sum))".formatted(kernel.infinity());
    kernel.put(
        "$STORE_LOG",
        logs.map(
                ref ->
                    "if (threadIdx.x == 0) {\n      %s\n    }"
                        .formatted(kernel.assignment(ref, List.of("b", "h", "q", "0"), log)))
            .orElse(""));
    return kernel.launch(FORWARD);
  }

  /** {@return a launch that computes the gradients of queries, of the bias, or both} */
  static DeviceStep.Launch gradientOfQueries(
      Problem problem, Saved saved, Optional<TensorRef> ofQuery, Optional<TensorRef> ofBias) {
    var kernel = new AttentionKernel(problem, rows(problem.query()));
    kernel.put(saved);
    kernel.put(
        "$STORE_BIAS",
        ofBias.map(ref -> kernel.assignment(ref, List.of("b", "h", "q", "k"), "slope")).orElse(""));
    kernel.put("$STORE_QUERY", "");
    ofQuery.ifPresent(
        ref -> kernel.store("$STORE_QUERY", ref, "b", "h", "q", "(slope_of_query[i] * $SCALE)"));
    return kernel.launch(GRADIENT_OF_QUERIES);
  }

  /** {@return a launch that computes the gradients of keys, of values, or both} */
  static DeviceStep.Launch gradientsOfKeys(
      Problem problem, Saved saved, Optional<TensorRef> ofKey, Optional<TensorRef> ofValue) {
    var kernel = new AttentionKernel(problem, rows(problem.key()));
    kernel.put(saved);
    kernel.put("$STORE_KEY", "");
    kernel.put("$STORE_VALUE", "");
    ofKey.ifPresent(
        ref ->
            kernel.store("$STORE_KEY", ref, "b", "shared_head", "k", "(slope_of_key[i] * $SCALE)"));
    ofValue.ifPresent(
        ref -> kernel.store("$STORE_VALUE", ref, "b", "shared_head", "k", "slope_of_value[i]"));
    return kernel.launch(GRADIENTS_OF_KEYS);
  }

  private static long rows(TensorRef ref) {
    return ref.type().size(0) * ref.type().size(1) * ref.type().size(2);
  }

  private void put(String name, Object text) {
    texts.put(name, text.toString());
  }

  private void put(Saved saved) {
    row("$GRAD", saved.grad(), "b", "h", "q");
    row("$OUT", saved.out(), "b", "h", "q");
    put("$LOG", "(Sum)" + value(saved.logs(), "b", "h", "q", "0"));
  }

  private String infinity() {
    return Literals.floating(Double.POSITIVE_INFINITY, problem.wide());
  }

  private String element(TensorRef ref, List<String> indices) {
    return memory.element(
        CTypes.stored(ref.type().dtype()),
        KernelArgument.Memory.of(problem.rank(), ref),
        Indices.offset(ref.type(), indices));
  }

  private String value(TensorRef ref, String... indices) {
    return CTypes.widen(ref.type().dtype(), element(ref, List.of(indices)));
  }

  private String assignment(TensorRef ref, List<String> indices, String value) {
    return "%s = %s;".formatted(element(ref, indices), CTypes.narrow(ref.type().dtype(), value));
  }

  /** Has a name, with {@code [d]} after it, stand for an element of a row. */
  private void row(String name, TensorRef ref, String batch, String head, String row) {
    put(name + "[d]", value(ref, batch, head, row, "d"));
  }

  private void store(
      String name, TensorRef ref, String batch, String head, String row, String value) {
    put(name, assignment(ref, List.of(batch, head, row, "d"), value));
  }

  private String biased(TensorRef ref) {
    var own = value(ref, "b", "h", "q", "k");
    return ref.type().dtype() == DType.BOOL
        ? "sum = %s != 0 ? sum : -%s;".formatted(own, infinity())
        : "sum += (Sum)%s;".formatted(own);
  }

  private DeviceStep.Launch launch(String template) {
    var text = COMMON + template;
    // Longer names first, as some begin like others.
    for (var name :
        texts.keySet().stream().sorted(Comparator.comparing(String::length).reversed()).toList()) {
      text = text.replace(name, texts.getOrDefault(name, ""));
    }
    return memory.launch(
        problem.stream(),
        CTypes.PRELUDE + memory.struct() + text,
        blocks,
        MAX_BLOCKS,
        THREADS,
        problem.label());
  }
}
