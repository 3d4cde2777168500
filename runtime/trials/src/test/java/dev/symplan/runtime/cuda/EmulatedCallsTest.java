package dev.symplan.runtime.cuda;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.json.JsonMapper;
import com.google.common.collect.ImmutableSet;
import com.google.common.collect.Iterables;
import com.google.common.collect.Streams;
import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.codegen.Lowering;
import dev.symplan.codegen.composite.Composites;
import dev.symplan.codegen.cuda.DeviceLowering;
import dev.symplan.codegen.cuda.UnsupportedOnGpu;
import dev.symplan.ir.DType;
import dev.symplan.ir.MemorySpace;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.aten.BuiltinOps;
import dev.symplan.planner.plan.Plan;
import dev.symplan.runtime.check.OutputCheck;
import dev.symplan.runtime.host.HostKernels;
import dev.symplan.runtime.tensor.HostTensor;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.zip.GZIPInputStream;
import org.junit.jupiter.api.Test;

/**
 * The kernels of ops that are made of steps give what PyTorch gave, run on this machine's
 * processor.
 */
class EmulatedCallsTest {
  private static final Path RECORDED =
      Path.of(System.getProperty("symplan.root"), "runtime/core/src/test/resources/recorded");

  /** Their calls are of complex numbers, but for a few. */
  private static final String COMPLEX = "complex";

  private static final String LISTS = "aten::_foreach_";

  private static final ImmutableSet<String> OTHERS =
      ImmutableSet.of(
          "aten::digamma",
          "aten::i0",
          "aten::gcd",
          "aten::lcm",
          "aten::nextafter",
          "aten::pow.Scalar",
          "aten::pow.Tensor_Tensor",
          "aten::_scaled_dot_product_efficient_attention_backward",
          "prims::convert_element_type");

  /** A program of one call, made of a recorded line. */
  private static final class Call {
    private final String op;
    private final List<HostTensor> inputs = new ArrayList<>();
    private final List<Optional<HostTensor>> outputs = new ArrayList<>();
    private final String text;

    Call(JsonNode line) {
      var schema = line.get("op").asText();
      this.op = schema.substring(0, schema.indexOf('('));
      var args =
          Streams.concat(
                  Streams.stream(line.get("args")).map(this::arg),
                  line.path("kwargs").properties().stream()
                      .map(e -> e.getKey() + "=" + arg(e.getValue())))
              .collect(Collectors.joining(", "));
      var results = Iterables.size(line.get("results"));
      var returned = new ArrayList<String>();
      for (int i = 0; i < results; i++) {
        if (line.get("results").get(i).has("data")) {
          outputs.add(Optional.of(tensor(line.get("results").get(i))));
          returned.add("y" + i);
        }
      }
      this.text =
          """
          graph version 1
          graph t(%s) {
            %s = %s(%s)
            return %s
          }
          """
              .formatted(
                  IntStream.range(0, inputs.size())
                      .mapToObj(i -> "x%s: %s".formatted(i, inputs.get(i).type()))
                      .collect(Collectors.joining(", ")),
                  IntStream.range(0, results)
                      .mapToObj(i -> "y" + i)
                      .collect(Collectors.joining(", ")),
                  op,
                  args,
                  String.join(", ", returned));
    }

    private String arg(JsonNode node) {
      if (node.has("data")) {
        inputs.add(tensor(node));
        return "x" + (inputs.size() - 1);
      } else if (node.has("float")) {
        return node.get("float").asText();
      } else if (node.isArray()) {
        return Streams.stream(node).map(this::arg).toList().toString();
      } else if (node.isBoolean()) {
        return node.asBoolean() ? "True" : "False";
      } else if (node.has("device")) {
        return "device('%s')".formatted(node.get("device").asText());
      } else if (node.has("torch")) {
        return "torch." + node.get("torch").asText();
      } else if (node.isTextual()) {
        return "\"%s\"".formatted(node.asText());
      }
      return node.isNull() ? "None" : node.asText();
    }

    private static HostTensor tensor(JsonNode node) {
      var dtype = DType.ofShortName(node.get("dtype").asText()).orElseThrow();
      var data = node.get("data");
      var flat = HostTensor.allocate(TensorType.contiguous(dtype.real(), data.size()));
      for (int i = 0; i < data.size(); i++) {
        if (!dtype.real().isFloat()) {
          flat.setLong(data.get(i).bigIntegerValue().longValue(), i);
          continue;
        }
        flat.set(
            switch (data.get(i).asText()) {
              case "inf" -> Double.POSITIVE_INFINITY;
              case "-inf" -> Double.NEGATIVE_INFINITY;
              case "nan" -> Double.NaN;
              default -> data.get(i).doubleValue();
            },
            i);
      }
      return flat.as(
          new TensorType(
              dtype, longs(node.get("size")), longs(node.get("stride")), MemorySpace.ANY));
    }

    private static ImmutableLongArray longs(JsonNode list) {
      return ImmutableLongArray.copyOf(Streams.stream(list).map(JsonNode::longValue).toList());
    }

    Plan plan() {
      return LocalPrograms.plan(text);
    }

    /** {@return why it has no kernels, if it has none} */
    Optional<String> refusal() {
      try {
        EmulatedSession.lower(Lowering.lower(plan()).ranks().getFirst());
        return Optional.empty();
      } catch (UnsupportedOnGpu e) {
        return Optional.of(String.valueOf(e.getMessage()));
      }
    }

    private String family() {
      return DeviceLowering.family(BuiltinOps.registry().get(op)).orElse("");
    }
  }

  private static List<Call> calls() throws IOException {
    var calls = calls("ops");
    calls.addAll(calls(COMPLEX));
    return calls;
  }

  private static List<Call> calls(String name) throws IOException {
    var file = RECORDED.resolve(name + ".jsonl.gz");
    var json = new JsonMapper();
    var calls = new ArrayList<Call>();
    try (var lines =
        new BufferedReader(
            new InputStreamReader(
                new GZIPInputStream(Files.newInputStream(file)), StandardCharsets.UTF_8))) {
      lines.readLine();
      for (var line = lines.readLine(); line != null; line = lines.readLine()) {
        calls.add(new Call(json.readTree(line)));
      }
    }
    return calls;
  }

  @Test
  void giveWhatPyTorchGave() throws IOException {
    var calls = new ArrayList<Call>();
    Set<String> ops = new HashSet<>();
    for (var call : calls()) {
      boolean list = call.op.startsWith(LISTS);
      // Ops on lists are tested by their items, too.
      if ((list && ops.add(call.op)) || Composites.names().contains(call.op)) {
        ops.add(call.op);
        calls.add(call);
      }
    }
    assertThat(ops).containsAll(Composites.names());
    check(calls);
  }

  /** Each element by its place, products of any shape, sorting, and functions that CUDA lacks. */
  @Test
  void opsByPositionGiveWhatPyTorchGave() throws IOException {
    check(
        calls().stream()
            .filter(
                call ->
                    Set.of("by position", "product", "joined or copied").contains(call.family())
                        || OTHERS.contains(call.op))
            .toList());
  }

  @Test
  void complexNumbersGiveWhatPyTorchGave() throws IOException {
    check(calls(COMPLEX));
  }

  /** What the host backend runs, and this one does not, is named with the reason. */
  @Test
  void nothingElseIsRefused() throws IOException {
    var refused = new TreeSet<String>();
    for (var call : calls()) {
      call.refusal().ifPresent(refused::add);
    }
    assertThat(refused).isEmpty();
    assertThat(HostKernels.names())
        .filteredOn(op -> DeviceLowering.family(BuiltinOps.registry().get(op)).isEmpty())
        // Instructions of their own.
        .containsExactly("symplan::await_copy", "symplan::border", "symplan::setup_end");
  }

  private static void check(List<Call> calls) {
    var plans = calls.stream().map(Call::plan).toList();
    var sessions = EmulatedSession.open(plans.stream().map(Lowering::lower).toList());
    var differences = new ArrayList<String>();
    for (int i = 0; i < plans.size(); i++) {
      var call = calls.get(i);
      try (var session = sessions.get(i)) {
        for (int input = 0; input < call.inputs.size(); input++) {
          var value = call.inputs.get(input);
          session.input(0, input).ifPresent(memory -> memory.copyFrom(value));
        }
        session.run();
        var checks = OutputCheck.of(plans.get(i), session, 0, call.outputs);
        if (checks.isEmpty() || !checks.stream().allMatch(OutputCheck::agrees)) {
          differences.add("%s%n%s".formatted(call.text, checks));
        }
      } catch (IllegalStateException e) {
        differences.add("%s%n%s".formatted(call.text, e));
      }
    }
    assertThat(differences).isEmpty();
  }
}
