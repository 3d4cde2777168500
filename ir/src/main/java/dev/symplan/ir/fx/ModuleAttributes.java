package dev.symplan.ir.fx;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableSet;
import dev.symplan.ir.diag.Diagnostic;
import dev.symplan.ir.diag.DiagnosticCode;
import dev.symplan.ir.diag.DiagnosticSink;
import dev.symplan.ir.fx.FxFunction.Param;
import dev.symplan.ir.fx.FxFunction.Statement;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/**
 * The attributes of its module that a graph reads as {@code self.name}: subgraphs and constants.
 */
final class ModuleAttributes {
  /** Ops whose result has the type of their argument. */
  private static final ImmutableSet<String> SAME_TYPE =
      ImmutableSet.of(
          "torch.ops.aten.lift_fresh_copy.default",
          "torch.ops.aten.lift_fresh.default",
          "torch.ops.aten.clone.default",
          "torch.ops.aten.detach.default",
          "torch.ops.aten.alias.default");

  private final FxFunction function;
  private final StatementWriter writer;
  private final DiagnosticSink sink;

  /** Inputs after the graph's own, which hold constants. */
  private final List<Param> constants = new ArrayList<>();

  /** The inputs of constants, by the attributes that hold them. */
  private final Map<String, String> inputs = new HashMap<>();

  /** Attributes that the text says nothing of. */
  private final List<Statement> missing = new ArrayList<>();

  /** Subgraphs, by the values that they are assigned to. */
  private final Map<String, FxFunction> subgraphs = new HashMap<>();

  ModuleAttributes(FxFunction function, StatementWriter writer, DiagnosticSink sink) {
    this.function = function;
    this.writer = writer;
    this.sink = sink;
  }

  /** {@return the inputs that constants became} */
  ImmutableList<Param> constants() {
    return ImmutableList.copyOf(constants);
  }

  /** {@return the subgraph that a value is} */
  Optional<FxFunction> subgraph(FxExpr value) {
    return value instanceof FxExpr.Name(String name)
        ? Optional.ofNullable(subgraphs.get(name))
        : Optional.empty();
  }

  /** {@return the name of a new input, for a constant of a subgraph that is called here} */
  String addConstant(Param constant) {
    var name = writer.unique(constant.name());
    constants.add(new Param(name, constant.type(), constant.span()));
    return name;
  }

  /** {@code x = self.name}: a subgraph, or a constant, which becomes an input. */
  void read(Statement statement, String attribute) {
    var subgraph = Optional.ofNullable(function.subgraphs().get(attribute));
    if (subgraph.isPresent()) {
      subgraphs.put(statement.name(), subgraph.get());
      return;
    }
    var known = Optional.ofNullable(inputs.get(attribute));
    if (known.isPresent()) {
      writer.renaming().rename(statement.name(), new FxExpr.Name(known.get()));
      return;
    }
    var type = statement.type().or(() -> typeOfUse(statement.name()));
    if (type.isEmpty()) {
      missing.add(statement);
      return;
    }
    inputs.put(attribute, statement.name());
    constants.add(new Param(statement.name(), type, statement.span()));
    sink.report(
        Diagnostic.warning(
            DiagnosticCode.MISSING_ANNOTATION,
            statement.span(),
            "the text does not contain the constant 'self.%s'; it becomes the input '%s'"
                .formatted(attribute, statement.name()),
            "to run the graph with its value: --weights FILE, a safetensors file with this name"));
  }

  /** Reports the attributes that are neither a subgraph nor a constant of a known type. */
  void reportMissing() {
    for (var statement : missing) {
      // As torch.export and AOTAutograd name them.
      boolean scriptObject = statement.name().contains("torchbind_obj");
      sink.report(
          Diagnostic.error(
              DiagnosticCode.UNSUPPORTED,
              statement.span(),
              scriptObject
                  ? "this is a TorchBind object, such as a handle of symmetric memory; what ops do"
                      + " with it is not known, and plans make their own handles"
                  : "this is a constant or a subgraph of the module, which the text does not"
                      + " contain",
              scriptObject
                  ? "write ops that take a group's name: torch.ops._c10d_functional.all_reduce, or"
                      + " torch.ops.symm_mem.one_shot_all_reduce"
                  : "with its type, a constant can be an input, and with its class below, a"
                      + " subgraph can be planned: "
                      + FxGraphReader.PRINT_HINT));
    }
  }

  private Optional<FxType> typeOfUse(String name) {
    var wanted = new FxExpr.Name(name);
    return function.statements().stream()
        .filter(
            statement ->
                statement.value() instanceof FxExpr.Call(String target, var args, _, _)
                    && SAME_TYPE.contains(target)
                    && !args.isEmpty()
                    && args.getFirst().equals(wanted))
        .flatMap(statement -> statement.type().stream())
        .findFirst();
  }
}
