package dev.symplan.codegen.cuda;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;
import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.codegen.TensorRef;
import dev.symplan.ir.DType;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/**
 * Scaled dot-product attention of tensors [batch, heads, rows, features], in all its signatures but
 * with dropout.
 *
 * <p>A block has one row of queries, whose softmax goes along while keys go by (Milakov and
 * Gimelshein 2018), so that scores are never in memory. Gradients are those of FlashAttention (Dao
 * et al. 2022), a block for each row of queries and one for each of keys: nothing is added up in an
 * order that differs from run to run. All is computed in f32 (f64 for f64). It is made to be right
 * rather than fast: no tensor cores.
 */
final class AttentionKernels {
  private static final int THREADS = 128;
  private static final int MAX_BLOCKS = 1 << 20;

  private static final ImmutableMap<String, String> BIASES =
      ImmutableMap.<String, String>builder()
          .put("aten::scaled_dot_product_attention", "attn_mask")
          .put("aten::_scaled_dot_product_efficient_attention", "attn_bias")
          .put("aten::_scaled_dot_product_flash_attention", "")
          .put("aten::_scaled_dot_product_cudnn_attention", "attn_bias")
          .put("aten::_scaled_dot_product_flash_attention_for_cpu", "attn_mask")
          .put("aten::_scaled_dot_product_efficient_attention_backward", "attn_bias")
          .put("aten::_scaled_dot_product_flash_attention_backward", "")
          .put("aten::_scaled_dot_product_cudnn_attention_backward", "attn_bias")
          .put("aten::_scaled_dot_product_flash_attention_for_cpu_backward", "attn_mask")
          .buildOrThrow();

  /** What all kernels begin with. */
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

  private final int rank;
  private final OpArguments arguments;
  private final TensorRef query;
  private final TensorRef key;
  private final TensorRef value;
  private final Optional<TensorRef> bias;
  private final boolean wide;
  private final long group;

  private AttentionKernels(int rank, OpArguments arguments) {
    this.rank = rank;
    this.arguments = arguments;
    if (arguments.number("dropout_p").doubleValue() != 0) {
      throw arguments.unsupported(arguments.name() + " with dropout");
    }
    query = fourDimensional(arguments.tensor("query"));
    key = fourDimensional(arguments.tensor("key"));
    value = fourDimensional(arguments.tensor("value"));
    var scores =
        ImmutableLongArray.of(
            query.type().size(0), query.type().size(1), query.type().size(2), key.type().size(2));
    var param = BIASES.getOrDefault(arguments.name(), "");
    bias =
        param.isEmpty()
            ? Optional.empty()
            : arguments.optionalTensor(param).map(ref -> Moves.expand(ref, scores));
    var dtype = query.type().dtype();
    wide = dtype == DType.F64;
    group = query.type().size(1) / Math.max(1, key.type().size(1));
    if (!CTypes.computes(dtype) || !dtype.isFloat()) {
      throw arguments.unsupported("%s of %s".formatted(arguments.name(), dtype.shortName()));
    }
  }

  static boolean supports(String op) {
    return BIASES.containsKey(op);
  }

  /**
   * {@return what a rank does for attention or its gradients}
   *
   * @throws UnsupportedOnGpu when there is no CUDA implementation
   */
  static ImmutableList<DeviceStep> lower(int rank, OpArguments arguments) {
    var kernels = new AttentionKernels(rank, arguments);
    return arguments.name().endsWith("_backward") ? kernels.backward() : kernels.forward();
  }

  /** Missing dimensions are 1. */
  private TensorRef fourDimensional(TensorRef ref) {
    var type = ref.type();
    if (type.rank() > 4) {
      throw arguments.unsupported("%s of %s".formatted(arguments.name(), type));
    }
    var sizes = new long[] {1, 1, 1, 1};
    for (int dim = 0; dim < type.rank(); dim++) {
      sizes[4 - type.rank() + dim] = type.size(dim);
    }
    return Moves.expand(ref, ImmutableLongArray.copyOf(sizes));
  }

  /** Fills in one kernel's text. */
  private final class Writer {
    private final MemoryArguments memory = new MemoryArguments();
    private final long blocks;
    private final Map<String, String> texts = new LinkedHashMap<>();

    Writer(long blocks) {
      long columns = key.type().size(2);
      this.blocks = blocks;
      number("$BLOCKS", blocks);
      number("$THREADS", THREADS);
      number("$ROWS", query.type().size(2));
      number("$COLUMNS", columns);
      number("$HEADS", query.type().size(1));
      number("$GROUP", group);
      number("$FEATURES", query.type().size(3));
      number("$WIDTH", value.type().size(3));
      long widest = Math.max(query.type().size(3), value.type().size(3));
      number("$PARTS", Math.max(1, Math.ceilDiv(widest, THREADS)));
      texts.put("$CAUSAL", Boolean.toString(arguments.flag("is_causal")));
      texts.put("$INFINITY", Literals.floating(Double.POSITIVE_INFINITY, wide));
      double scale =
          arguments.has("scale")
              ? arguments.number("scale").doubleValue()
              : 1 / Math.sqrt(query.type().size(3));
      texts.put("$SCALE", Literals.floating(scale, wide));
      texts.put("$T", wide ? "double" : "float");
      row("$QUERY", query, "b", "h", "q");
      row("$KEY", key, "b", "h / " + group, "k");
      row("$VALUE", value, "b", "h / " + group, "k");
      texts.put("$BIAS", bias.map(this::biased).orElse(""));
    }

    private void number(String name, long number) {
      texts.put(name, Long.toString(number));
    }

    private String element(TensorRef ref, List<String> indices) {
      return memory.element(
          CTypes.stored(ref.type().dtype()),
          Address.of(rank, ref),
          Indices.offset(ref.type(), indices));
    }

    String value(TensorRef ref, String... indices) {
      return CTypes.widen(ref.type().dtype(), element(ref, List.of(indices)));
    }

    /** Has a name, with {@code [d]} behind it, stand for an element of a row. */
    void row(String name, TensorRef ref, String batch, String head, String row) {
      texts.put(name + "[d]", value(ref, batch, head, row, "d"));
    }

    void store(String name, TensorRef ref, String batch, String head, String row, String value) {
      texts.put(
          name,
          "%s = %s;"
              .formatted(
                  element(ref, List.of(batch, head, row, "d")),
                  CTypes.narrow(ref.type().dtype(), value)));
    }

    void put(String name, String text) {
      texts.put(name, text);
    }

    private String biased(TensorRef ref) {
      var own = value(ref, "b", "h", "q", "k");
      return ref.type().dtype() == DType.BOOL
          ? "sum = %s != 0 ? sum : -%s;".formatted(own, texts.get("$INFINITY"))
          : "sum += (Sum)%s;".formatted(own);
    }

    DeviceStep.Launch launch(String template) {
      var text = COMMON + template;
      // Longer names first, as some begin like others.
      for (var name :
          texts.keySet().stream()
              .sorted((a, b) -> Integer.compare(b.length(), a.length()))
              .toList()) {
        text = text.replace(name, texts.getOrDefault(name, ""));
      }
      return memory.launch(
          arguments.op().stream(),
          CTypes.PRELUDE + memory.struct() + text,
          blocks,
          MAX_BLOCKS,
          THREADS,
          arguments.op().name());
    }
  }

  private ImmutableList<DeviceStep> forward() {
    var steps = ImmutableList.<DeviceStep>builder();
    var out = fourDimensional(arguments.result());
    var logs = arguments.result(1).filter(ref -> ref.type().numel() > 0);
    for (int i = 1; i < arguments.op().results().size(); i++) {
      var extra = arguments.result(i).filter(ref -> ref.type().numel() > 0);
      if (extra.isPresent()) {
        boolean padded = i == 1 && extra.get().type().size(2) > query.type().size(2);
        if (i > 1 || padded) {
          steps.add(fill(extra.get(), i == 1 ? Double.POSITIVE_INFINITY : 0));
        }
      }
    }
    if (out.type().numel() > 0) {
      long blocks = out.type().size(0) * out.type().size(1) * out.type().size(2);
      var writer = new Writer(blocks);
      writer.store("$STORE_OUT", out, "b", "h", "q", "(sum == 0 ? 0 : out[i] / sum)");
      writer.put(
          "$STORE_LOG",
          logs.map(
                  ref ->
                      "if (threadIdx.x == 0) {\n      %s = %s;\n    }"
                          .formatted(
                              writer.element(ref, List.of("b", "h", "q", "0")),
                              CTypes.narrow(
                                  ref.type().dtype(),
                                  "(sum == 0 ? %s : most + log(sum))"
                                      .formatted(
                                          Literals.floating(Double.POSITIVE_INFINITY, wide)))))
              .orElse(""));
      steps.add(writer.launch(FORWARD));
    }
    return steps.build();
  }

  private DeviceStep fill(TensorRef ref, double value) {
    var kernel = new PlaceKernel(rank, ref.type().sizes());
    kernel.set(ref, kernel.indices(), PlaceKernel.number(ref.type().dtype(), value));
    return kernel.build(arguments.op().stream(), arguments.op().name());
  }

  private ImmutableList<DeviceStep> backward() {
    var grad =
        fourDimensional(
            arguments.tensor(arguments.hasParam("grad_out_") ? "grad_out_" : "grad_out"));
    var out = fourDimensional(arguments.tensor("out"));
    var logs = arguments.tensor("logsumexp");
    var steps = ImmutableList.<DeviceStep>builder();
    var ofQuery = arguments.result(0);
    var ofBias = arguments.result(3);
    if (ofBias.isPresent()
        && !(bias.isPresent() && ofBias.get().type().sizes().equals(bias.get().type().sizes()))) {
      throw arguments.unsupported(
          "%s with the gradient of a bias that is broadcast".formatted(arguments.name()));
    }
    if ((ofQuery.isPresent() || ofBias.isPresent()) && grad.type().numel() > 0) {
      var writer = new Writer(query.type().size(0) * query.type().size(1) * query.type().size(2));
      common(writer, grad, out, logs);
      writer.put(
          "$STORE_BIAS",
          ofBias
              .map(
                  ref ->
                      "%s = %s;"
                          .formatted(
                              writer.element(ref, List.of("b", "h", "q", "k")),
                              CTypes.narrow(ref.type().dtype(), "slope")))
              .orElse(""));
      writer.put("$STORE_QUERY", "");
      ofQuery.ifPresent(
          ref ->
              writer.store(
                  "$STORE_QUERY",
                  fourDimensional(ref),
                  "b",
                  "h",
                  "q",
                  "(slope_of_query[i] * $SCALE)"));
      steps.add(writer.launch(GRADIENT_OF_QUERIES));
    }
    var ofKey = arguments.result(1);
    var ofValue = arguments.result(2);
    if ((ofKey.isPresent() || ofValue.isPresent()) && key.type().numel() > 0) {
      var writer = new Writer(key.type().size(0) * key.type().size(1) * key.type().size(2));
      common(writer, grad, out, logs);
      writer.put("$STORE_KEY", "");
      writer.put("$STORE_VALUE", "");
      ofKey.ifPresent(
          ref ->
              writer.store(
                  "$STORE_KEY",
                  fourDimensional(ref),
                  "b",
                  "shared_head",
                  "k",
                  "(slope_of_key[i] * $SCALE)"));
      ofValue.ifPresent(
          ref ->
              writer.store(
                  "$STORE_VALUE",
                  fourDimensional(ref),
                  "b",
                  "shared_head",
                  "k",
                  "slope_of_value[i]"));
      steps.add(writer.launch(GRADIENTS_OF_KEYS));
    }
    return steps.build();
  }

  private static void common(Writer writer, TensorRef grad, TensorRef out, TensorRef logs) {
    writer.row("$GRAD", grad, "b", "h", "q");
    writer.row("$OUT", out, "b", "h", "q");
    writer.put("$LOG", "(Sum)" + writer.value(logs, "b", "h", "q", "0"));
  }
}
