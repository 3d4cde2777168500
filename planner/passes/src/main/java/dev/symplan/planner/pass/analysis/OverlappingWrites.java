package dev.symplan.planner.pass.analysis;

import com.google.common.collect.ImmutableSet;
import dev.symplan.ir.Arg;
import dev.symplan.ir.SharedElements;
import dev.symplan.ir.Value;
import dev.symplan.ir.aten.Form;
import dev.symplan.ir.diag.Diagnostic;
import dev.symplan.ir.diag.DiagnosticCode;
import dev.symplan.ir.diag.DiagnosticSink;
import dev.symplan.ir.graph.Op;
import dev.symplan.ir.op.OpDef;
import dev.symplan.ir.op.OpTrait;
import dev.symplan.ir.op.Param;
import java.util.List;
import java.util.Optional;

/**
 * Refuses ops in place that read elements after they may have written them, or write an element
 * twice: what they give would depend on the order of their threads. PyTorch refuses most of these.
 */
public final class OverlappingWrites {
  private static final ImmutableSet<String> COPIES =
      ImmutableSet.of("aten::copy_", "aten::_foreach_copy_", "fsdp::copy_");

  /** They write one number everywhere. */
  private static final ImmutableSet<String> FILLS = ImmutableSet.of("zero_", "fill_");

  private final Aliases aliases;
  private final Op op;

  private OverlappingWrites(Aliases aliases, Op op) {
    this.aliases = aliases;
    this.op = op;
  }

  /** Reports each such op. */
  public static void check(Analyses analyses, DiagnosticSink sink) {
    for (var op : analyses.graph().ops()) {
      find(analyses.aliases(), op).ifPresent(sink::report);
    }
  }

  /** {@return what is wrong with an op; empty if nothing is} */
  public static Optional<Diagnostic> find(Aliases aliases, Op op) {
    return op.def().schema().mutates() && isChecked(op.def())
        ? new OverlappingWrites(aliases, op)
            .find()
            .map(
                message ->
                    Diagnostic.error(
                        DiagnosticCode.UNSUPPORTED,
                        op.span(),
                        message,
                        "use a copy (aten::clone) of what is read, or the form that makes a new"
                            + " result"))
        : Optional.empty();
  }

  private static boolean isChecked(OpDef def) {
    var name = def.name();
    return COPIES.contains(name.toString())
        || (def.rule().isPresent() && name.namespace().equals("aten"))
        || name.name().equals("_unsafe_index_put_");
  }

  private Optional<String> find() {
    var params = op.def().schema().params();
    for (int w = 0; w < params.size(); w++) {
      if (!params.get(w).alias().write()) {
        continue;
      }
      var written = op.args().get(w).operands();
      var twice = written.stream().filter(this::isWrittenTwice).findFirst();
      if (twice.isPresent()) {
        return twice.map(
            value ->
                "%s writes into '%s', in which several indices are one element"
                    .formatted(op.def().name(), value.name()));
      }
      for (int r = 0; r < params.size(); r++) {
        var clash =
            r == w || isReadFirst(params.get(r), op.args().get(r))
                ? Optional.<String>empty()
                : clash(written, op.args().get(r).operands());
        if (clash.isPresent()) {
          return clash;
        }
      }
    }
    return Optional.empty();
  }

  private boolean isWrittenTwice(Value value) {
    return !FILLS.contains(op.def().name().name())
        && value.isTensor()
        && !SharedElements.areApart(value.tensor());
  }

  /** Whether each thread finds the same number there, even where the op writes it. */
  private static boolean isReadFirst(Param param, Arg arg) {
    return param.name().equals("value")
        && arg.operands().stream()
            .allMatch(value -> !value.isTensor() || value.tensor().rank() == 0);
  }

  private Optional<String> clash(List<Value> written, List<Value> read) {
    boolean byItem = COPIES.contains(op.def().name().toString());
    for (int i = 0; i < written.size(); i++) {
      var to = written.get(i);
      for (var from : byItem && i < read.size() ? read.subList(i, i + 1) : read) {
        if (mayClash(to, from)) {
          return Optional.of(
              "%s writes into '%s' some elements that it also reads, as others of '%s'"
                  .formatted(op.def().name(), to.name(), from.name()));
        }
      }
    }
    return Optional.empty();
  }

  private boolean mayClash(Value to, Value from) {
    if (!to.isTensor() || !from.isTensor() || aliases.id(to) != aliases.id(from)) {
      return false;
    }
    var shared =
        new SharedElements(to.tensor(), aliases.offset(to), from.tensor(), aliases.offset(from));
    return isElementwise(op.def()) ? shared.atOtherIndices() : shared.any();
  }

  private static boolean isElementwise(OpDef def) {
    return COPIES.contains(def.name().toString())
        || Form.functional(def).filter(form -> form.def().has(OpTrait.ELEMENTWISE)).isPresent();
  }
}
