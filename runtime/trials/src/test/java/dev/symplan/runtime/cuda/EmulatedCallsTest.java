package dev.symplan.runtime.cuda;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.json.JsonMapper;
import com.google.common.collect.Iterables;
import com.google.common.collect.Streams;
import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.codegen.Lowering;
import dev.symplan.codegen.composite.Composites;
import dev.symplan.codegen.cuda.UnsupportedOnGpu;
import dev.symplan.ir.DType;
import dev.symplan.ir.MemorySpace;
import dev.symplan.ir.TensorType;
import dev.symplan.planner.plan.Plan;
import dev.symplan.runtime.check.OutputCheck;
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
      Path.of(
          System.getProperty("symplan.root"),
          "runtime/core/src/test/resources/recorded/ops.jsonl.gz");

  private static final String LISTS = "aten::_foreach_";

  /** A program of one call, made of a line of {@code recorded/ops.jsonl.gz}. */
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
      }
      return node.isNull() ? "None" : node.asText();
    }

    private static HostTensor tensor(JsonNode node) {
      var dtype = DType.ofShortName(node.get("dtype").asText()).orElseThrow();
      var data = node.get("data");
      var flat = HostTensor.allocate(TensorType.contiguous(dtype, data.size()));
      for (int i = 0; i < data.size(); i++) {
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

    /** {@return the kernels that are generated for it; empty if the call is refused} */
    Optional<Plan> plan() {
      var plan = LocalPrograms.plan(text);
      try {
        EmulatedSession.lower(Lowering.lower(plan).ranks().getFirst());
        return Optional.of(plan);
      } catch (UnsupportedOnGpu e) {
        // These reduce over rows of rows, in more steps than there is memory for.
        assertThat(op).as(e.getMessage()).isEqualTo("aten::cross_entropy_loss");
        return Optional.empty();
      }
    }
  }

  private static List<Call> calls() throws IOException {
    var json = new JsonMapper();
    var calls = new ArrayList<Call>();
    try (var lines =
        new BufferedReader(
            new InputStreamReader(
                new GZIPInputStream(Files.newInputStream(RECORDED)), StandardCharsets.UTF_8))) {
      lines.readLine();
      for (var line = lines.readLine(); line != null; line = lines.readLine()) {
        var call = json.readTree(line);
        var schema = call.get("op").asText();
        if (Composites.names().contains(schema.substring(0, schema.indexOf('(')))
            || schema.startsWith(LISTS)) {
          calls.add(new Call(call));
        }
      }
    }
    return calls;
  }

  @Test
  void giveWhatPyTorchGave() throws IOException {
    var calls = new ArrayList<Call>();
    var plans = new ArrayList<Plan>();
    Set<String> ops = new HashSet<>();
    for (var call : calls()) {
      // Ops on lists are tested by their items, too.
      if (ops.add(call.op) || !call.op.startsWith(LISTS)) {
        call.plan()
            .ifPresent(
                plan -> {
                  calls.add(call);
                  plans.add(plan);
                });
      }
    }
    assertThat(ops).containsAll(Composites.names());
    var sessions = EmulatedSession.open(plans.stream().map(Lowering::lower).toList());
    for (int i = 0; i < plans.size(); i++) {
      var call = calls.get(i);
      try (var session = sessions.get(i)) {
        for (int input = 0; input < call.inputs.size(); input++) {
          var value = call.inputs.get(input);
          session.input(0, input).ifPresent(memory -> memory.copyFrom(value));
        }
        session.run();
        assertThat(OutputCheck.of(plans.get(i), session, 0, call.outputs))
            .as(call.text)
            .isNotEmpty()
            .allMatch(OutputCheck::agrees);
      }
    }
  }
}
