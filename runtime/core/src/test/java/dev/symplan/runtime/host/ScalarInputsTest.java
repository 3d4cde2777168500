package dev.symplan.runtime.host;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.common.base.Throwables;
import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableSet;
import dev.symplan.ir.Arg;
import dev.symplan.ir.Notes;
import dev.symplan.ir.ScalarType;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.Value;
import dev.symplan.ir.diag.CompileException;
import dev.symplan.ir.diag.DiagnosticSink;
import dev.symplan.ir.diag.Span;
import dev.symplan.ir.graph.GraphBuilder;
import dev.symplan.ir.graph.GraphBuilder.ResultSpec;
import dev.symplan.ir.graph.Program;
import dev.symplan.ir.op.OpTypeException;
import dev.symplan.planner.Compiler;
import dev.symplan.planner.machine.Target;
import dev.symplan.planner.options.CompileOptions;
import dev.symplan.runtime.Session;
import dev.symplan.runtime.failure.RunException;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.TreeSet;
import org.junit.jupiter.api.Test;

/** A number that is an input of the graph: plans allow for it, and the host backend refuses it. */
class ScalarInputsTest {
  private static final Compiler COMPILER =
      Compiler.forTarget(Target.H200_X4).with(CompileOptions.DEFAULT.withRanks(1));

  /** Arguments that change no result, or none of the calls here. */
  private static final ImmutableSet<String> WITHOUT_EFFECT =
      ImmutableSet.of(
          "compute_log_sumexp",
          "cudnn_enable",
          "cudnn_enabled",
          "dampening",
          "eps",
          "is_first_step",
          "max_k",
          "max_q",
          "momentum",
          "nesterov",
          "non_blocking",
          "padding_idx",
          "requires_grad",
          "return_debug_mask",
          "scale_grad_by_freq",
          "self_is_result",
          "sorted",
          "sparse",
          "sparse_grad",
          "stable",
          "training",
          "use_fast_accum");

  @Test
  void everyNumberOfAnOpMayBeAnInput() {
    var findings = new ArrayList<String>();
    var ignored = new TreeSet<String>();
    int planned = 0;
    int refused = 0;
    for (var calls : RecordedCall.all().asMap().values()) {
      var call = calls.iterator().next();
      for (int i = 0; i < call.args().size(); i++) {
        var type = scalar(call.args().get(i));
        if (type.isEmpty()) {
          continue;
        }
        Program program;
        try {
          program = program(call, i, type.get());
        } catch (OpTypeException | IllegalArgumentException e) {
          // The graph's builder answers these with an error at the op.
          assertThat(e.getMessage()).isNotEmpty();
          continue;
        }
        try {
          var plan = COMPILER.compile(program);
          planned++;
          try (var session = Session.open(plan, new HostBackend())) {
            for (int k = 0; k < call.operands().size(); k++) {
              session.input(0, k).orElseThrow().copyFrom(call.operands().get(k));
            }
            session.run();
            ignored.add(call.def().schema().params().get(i).name());
          }
        } catch (CompileException e) {
          assertThat(e.diagnostics()).isNotEmpty();
        } catch (RunException e) {
          assertThat(e).hasMessageContaining("takes only numbers that are written in the graph");
          refused++;
        } catch (RuntimeException e) {
          findings.add(
              "%s, %s: %s"
                  .formatted(
                      call,
                      call.def().schema().params().get(i).name(),
                      Throwables.getStackTraceAsString(e)));
        }
      }
    }
    assertThat(findings).isEmpty();
    assertThat(planned).isGreaterThan(100);
    assertThat(refused).isGreaterThan(100);
    assertThat(ignored).isSubsetOf(WITHOUT_EFFECT);
  }

  private static Optional<ScalarType> scalar(Arg arg) {
    return switch (arg) {
      case Arg.Int _ -> Optional.of(ScalarType.INT);
      case Arg.Float _ -> Optional.of(ScalarType.FLOAT);
      case Arg.Bool _ -> Optional.of(ScalarType.BOOL);
      case Arg.Ref _, Arg.Seq _, Arg.Literal _ -> Optional.empty();
    };
  }

  private static Program program(RecordedCall call, int changed, ScalarType type) {
    var sink = new DiagnosticSink();
    var builder = new GraphBuilder("g", Span.NONE, sink);
    var tensors = new ArrayList<Value>();
    for (var operand : call.operands()) {
      tensors.add(builder.input("x" + tensors.size(), operand.type(), Span.NONE));
    }
    var number = builder.input("number", type, Span.NONE);
    var args = new ArrayList<Arg>();
    for (var arg : call.args()) {
      args.add(args.size() == changed ? new Arg.Ref(number) : rebound(arg, tensors));
    }
    var bound = ImmutableList.copyOf(args);
    var specs = new ArrayList<ResultSpec>();
    for (var _ : call.def().infer(bound).orElseThrow()) {
      specs.add(ResultSpec.named("y" + specs.size(), Span.NONE));
    }
    for (var result : builder.op(call.def(), bound, specs, Span.NONE, Notes.NONE)) {
      if (result.type() instanceof TensorType) {
        builder.output(new Arg.Ref(result));
      }
    }
    sink.throwIfErrors();
    return new Program(
        ImmutableList.of(), ImmutableList.of(), ImmutableList.of(builder.build()), Notes.NONE);
  }

  private static Arg rebound(Arg arg, List<Value> tensors) {
    return switch (arg) {
      case Arg.Ref(Value value) -> new Arg.Ref(tensors.get(value.id()));
      case Arg.Seq(ImmutableList<Arg> items) ->
          new Arg.Seq(
              items.stream()
                  .map(item -> rebound(item, tensors))
                  .collect(ImmutableList.toImmutableList()));
      case Arg.Literal _ -> arg;
    };
  }
}
