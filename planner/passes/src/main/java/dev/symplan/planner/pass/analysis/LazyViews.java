package dev.symplan.planner.pass.analysis;

import dev.symplan.ir.Value;
import dev.symplan.ir.diag.Diagnostic;
import dev.symplan.ir.diag.DiagnosticCode;
import dev.symplan.ir.diag.DiagnosticSink;
import dev.symplan.ir.graph.Op;
import dev.symplan.ir.op.OpTrait;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * Refuses programs that write into what {@code torch.conj} sees, or into what it gives, and read
 * the other one afterwards. In PyTorch both are one memory, in which the write shows; here they are
 * two.
 */
public final class LazyViews {
  private final Analyses analyses;
  private final DiagnosticSink sink;

  /** By family of storages, the op that reads it last; outputs are read after all. */
  private final Map<Integer, Integer> lastRead = new HashMap<>();

  /** By family, all those that are one memory in PyTorch. */
  private final Map<Integer, Set<Integer>> shared = new HashMap<>();

  private LazyViews(Analyses analyses, DiagnosticSink sink) {
    this.analyses = analyses;
    this.sink = sink;
  }

  /** Reports each op that may write there. */
  public static void check(Analyses analyses, DiagnosticSink sink) {
    if (analyses.graph().ops().stream().anyMatch(LazyViews::isLazy)) {
      new LazyViews(analyses, sink).check();
    }
  }

  private static boolean isLazy(Op op) {
    return op.def().has(OpTrait.LAZY_VIEW);
  }

  private void check() {
    var ops = analyses.graph().ops();
    for (int i = 0; i < ops.size(); i++) {
      int reader = i;
      families(ops.get(i).operands().stream()).forEach(family -> lastRead.put(family, reader));
    }
    for (var output : analyses.graph().outputs()) {
      families(output.operands().stream()).forEach(family -> lastRead.put(family, ops.size()));
    }
    for (int i = 0; i < ops.size(); i++) {
      if (isLazy(ops.get(i))) {
        share(ops.get(i));
      } else {
        checkWrites(ops.get(i), i);
      }
    }
  }

  private List<Integer> families(Stream<Value> values) {
    return values
        .filter(Value::isTensor)
        .map(value -> analyses.aliases().family(value))
        .distinct()
        .toList();
  }

  private void share(Op op) {
    var all = new LinkedHashSet<Integer>();
    for (int family : families(Stream.concat(op.operands().stream(), op.results().stream()))) {
      all.add(family);
      all.addAll(shared.getOrDefault(family, Set.of()));
    }
    all.forEach(family -> shared.put(family, all));
  }

  private void checkWrites(Op op, int index) {
    var written = new ArrayList<Value>(op.written());
    written.addAll(op.moved());
    for (var value : written) {
      int family = analyses.aliases().family(value);
      @Nullable Set<Integer> others = shared.get(family);
      if (others != null
          && others.stream()
              .anyMatch(other -> other != family && lastRead.getOrDefault(other, -1) > index)) {
        sink.report(
            Diagnostic.error(
                DiagnosticCode.UNSUPPORTED,
                op.span(),
                "%s writes into '%s', of which a conjugate or negative view is read afterwards"
                    .formatted(op.def().name(), value.name()),
                "write into a copy (aten::clone), or make the view of one"));
        return;
      }
    }
  }
}
