package dev.symplan.ir.text;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;
import com.google.common.collect.ImmutableSet;
import com.google.common.collect.Iterables;
import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.ir.Arg;
import dev.symplan.ir.DType;
import dev.symplan.ir.MemorySpace;
import dev.symplan.ir.NoneType;
import dev.symplan.ir.PythonLiterals;
import dev.symplan.ir.ScalarType;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.Type;
import dev.symplan.ir.diag.Diagnostic;
import dev.symplan.ir.diag.DiagnosticCode;
import dev.symplan.ir.diag.DiagnosticSink;
import dev.symplan.ir.diag.Suggestions;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import org.antlr.v4.runtime.Token;
import org.jspecify.annotations.Nullable;

/**
 * Makes types and arguments of parsed text. After an error, which goes to the sink, the result is
 * empty.
 */
final class ValueReader {

  /** Other names that PyTorch has for element types. */
  private static final ImmutableMap<String, DType> DTYPE_ALIASES =
      ImmutableMap.of(
          "float", DType.F32,
          "double", DType.F64,
          "half", DType.F16,
          "long", DType.I64,
          "int", DType.I32,
          "short", DType.I16,
          "cfloat", DType.C64,
          "cdouble", DType.C128);

  /** Constants of the torch module whose names are close to those of element types. */
  private static final ImmutableSet<String> OTHER_CONSTANTS =
      ImmutableSet.of(
          "qint8",
          "quint8",
          "qint32",
          "quint4x2",
          "quint2x4",
          "uint1",
          "uint2",
          "uint3",
          "uint4",
          "uint5",
          "uint6",
          "uint7",
          "int1",
          "int2",
          "int3",
          "int4",
          "int5",
          "int6",
          "int7",
          "float4_e2m1fn_x2",
          "inf",
          "nan",
          "pi",
          "e");

  private static final ImmutableMap<String, ScalarType> SCALARS =
      ImmutableMap.of("int", ScalarType.INT, "float", ScalarType.FLOAT, "bool", ScalarType.BOOL);

  private static final ImmutableList<String> TYPE_NAMES =
      ImmutableList.copyOf(
          Iterables.concat(
              SCALARS.keySet(), Arrays.stream(DType.values()).map(DType::shortName).toList()));

  private static final ImmutableList<String> TORCH_NAMES =
      Arrays.stream(DType.values()).map(DType::torchName).collect(ImmutableList.toImmutableList());

  private final StatementReader statements;
  private final DiagnosticSink sink;

  ValueReader(StatementReader statements, DiagnosticSink sink) {
    this.statements = statements;
    this.sink = sink;
  }

  void report(DiagnosticCode code, Token at, String message, String hint) {
    sink.report(Diagnostic.error(code, statements.span(at), message, hint));
  }

  Optional<Type> type(GraphTextParser.TypeContext context) {
    if (context.none != null) {
      return Optional.of(NoneType.NONE);
    }
    var space = space(context.space);
    if (space.isEmpty()) {
      return Optional.empty();
    }
    var name = context.base.getText();
    if (context.sizes == null) {
      return scalarType(context, name);
    }
    var dtype = DType.ofShortName(name);
    if (dtype.isEmpty()) {
      reportUnknownType(context.base, name);
      return Optional.empty();
    }
    return tensorType(context, dtype.get(), space.get());
  }

  private Optional<Type> scalarType(GraphTextParser.TypeContext context, String name) {
    @Nullable ScalarType scalar = SCALARS.get(name);
    if (scalar == null) {
      if (DType.ofShortName(name).isPresent()) {
        report(
            DiagnosticCode.SYNTAX,
            context.base,
            "'%s' needs its sizes".formatted(name),
            "a tensor of one element without dimensions is %s[]".formatted(name));
      } else {
        reportUnknownType(context.base, name);
      }
      return Optional.empty();
    }
    if (context.space != null) {
      report(
          DiagnosticCode.SYNTAX,
          context.space,
          "only tensors can be in a memory space, not %s".formatted(name),
          "");
      return Optional.empty();
    }
    return Optional.of(scalar);
  }

  private void reportUnknownType(Token at, String name) {
    var hint =
        DType.ofTorchName(name)
            .or(() -> Optional.ofNullable(DTYPE_ALIASES.get(name)))
            .map(dtype -> "it is called %s here".formatted(dtype.shortName()))
            .orElseGet(() -> Suggestions.hint(name, TYPE_NAMES));
    report(DiagnosticCode.UNKNOWN_NAME, at, "no type '%s'".formatted(name), hint);
  }

  private Optional<Type> tensorType(
      GraphTextParser.TypeContext context, DType dtype, MemorySpace space) {
    var sizes = longs(context.sizes.values);
    var strides =
        context.strides == null
            ? Optional.of(ImmutableLongArray.of())
            : longs(context.strides.values);
    if (sizes.isEmpty() || strides.isEmpty()) {
      return Optional.empty();
    }
    try {
      return Optional.of(
          new TensorType(
              dtype,
              sizes.get(),
              context.strides == null ? TensorType.contiguousStrides(sizes.get()) : strides.get(),
              space));
    } catch (IllegalArgumentException e) {
      sink.report(
          Diagnostic.error(
              DiagnosticCode.TYPE_MISMATCH,
              statements.span(context.start, context.stop),
              "no such tensor: " + e.getMessage()));
      return Optional.empty();
    }
  }

  private Optional<MemorySpace> space(@Nullable Token token) {
    if (token == null) {
      return Optional.of(MemorySpace.ANY);
    }
    var space = MemorySpace.ofKeyword(token.getText());
    if (space.isEmpty()) {
      report(
          DiagnosticCode.UNKNOWN_NAME,
          token,
          "no memory space '%s'".formatted(token.getText()),
          "choose from @symm, @local, @external, @donated and @host");
    }
    return space;
  }

  private Optional<ImmutableLongArray> longs(List<Token> tokens) {
    var values = ImmutableLongArray.builder(tokens.size());
    for (var token : tokens) {
      var value = integer(token);
      if (value.isEmpty()) {
        return Optional.empty();
      }
      values.add(value.get());
    }
    return Optional.of(values.build());
  }

  private Optional<Long> integer(Token token) {
    try {
      return Optional.of(Long.parseLong(token.getText()));
    } catch (NumberFormatException e) {
      report(DiagnosticCode.SYNTAX, token, "the number does not fit 64 bits", "");
      return Optional.empty();
    }
  }

  /** {@return the name of a group or graph: a word, or a string that is not empty} */
  Optional<String> name(Token token) {
    if (token.getType() != GraphTextLexer.STRING) {
      return Optional.of(token.getText());
    }
    var name = string(token);
    if (name.isPresent() && name.get().isEmpty()) {
      report(DiagnosticCode.SYNTAX, token, "a name must not be empty", "");
      return Optional.empty();
    }
    return name;
  }

  Optional<Arg> value(GraphScope scope, GraphTextParser.ExprContext context) {
    return context.plain != null
        ? literal(scope, context.plain)
        : named(scope, context.name, context.inside);
  }

  Optional<Arg> value(GraphScope scope, GraphTextParser.ArgContext context) {
    if (context.value != null) {
      return value(scope, context.value);
    }
    return context.plain != null
        ? literal(scope, context.plain)
        : named(scope, context.name, context.inside);
  }

  private Optional<Arg> named(
      GraphScope scope, Token name, GraphTextParser.@Nullable ParenthesizedContext inside) {
    var word = name.getText();
    if (inside != null) {
      return device(name, inside);
    }
    if (word.equals("inf") || word.equals("nan")) {
      return Optional.of(new Arg.Float(PythonLiterals.parseFloat(word)));
    }
    return scope.use(word, statements.span(name)).map(Arg.Ref::new);
  }

  private Optional<Arg> device(Token word, GraphTextParser.ParenthesizedContext inside) {
    if (!word.getText().equals("device")) {
      reportNested(word);
      return Optional.empty();
    }
    var only = inside.items.size() == 1 ? inside.items.getFirst().plain : null;
    if (only == null || only.token == null || only.token.getType() != GraphTextLexer.STRING) {
      report(
          DiagnosticCode.SYNTAX,
          word,
          "a device is one string",
          "device(\"cuda:0\") or device(\"cpu\")");
      return Optional.empty();
    }
    return string(only.token).map(Arg.Device::new);
  }

  private void reportNested(Token at) {
    report(
        DiagnosticCode.SYNTAX,
        at,
        "'%s' cannot be called inside a statement".formatted(at.getText()),
        "write each op as a separate statement");
  }

  private Optional<Arg> literal(GraphScope scope, GraphTextParser.LiteralContext context) {
    if (context.open != null) {
      return list(scope, context.items);
    }
    if (context.nested != null) {
      reportNested(context.nested);
      return Optional.empty();
    }
    var token = context.token;
    return switch (token.getType()) {
      case GraphTextLexer.INT -> integer(token).map(Arg.Int::new);
      case GraphTextLexer.FLOAT ->
          Optional.of(new Arg.Float(PythonLiterals.parseFloat(token.getText())));
      case GraphTextLexer.STRING -> string(token).map(Arg.Str::new);
      case GraphTextLexer.TRUE -> Optional.of(new Arg.Bool(true));
      case GraphTextLexer.FALSE -> Optional.of(new Arg.Bool(false));
      case GraphTextLexer.NONE -> Optional.of(Arg.None.NONE);
      default -> constant(token);
    };
  }

  private Optional<Arg> list(GraphScope scope, List<GraphTextParser.ExprContext> items) {
    var values = ImmutableList.<Arg>builderWithExpectedSize(items.size());
    boolean complete = true;
    for (var item : items) {
      var value = value(scope, item);
      complete &= value.isPresent();
      value.ifPresent(values::add);
    }
    return complete ? Optional.of(new Arg.Seq(values.build())) : Optional.empty();
  }

  private Optional<Arg> constant(Token token) {
    var name = token.getText().substring("torch.".length());
    var dtype = DType.ofTorchName(name).or(() -> Optional.ofNullable(DTYPE_ALIASES.get(name)));
    if (dtype.isPresent()) {
      return Optional.of(new Arg.Dtype(dtype.get()));
    }
    var meant =
        OTHER_CONSTANTS.contains(name)
            ? Optional.<String>empty()
            : Suggestions.closest(name, TORCH_NAMES);
    if (meant.isPresent()) {
      report(
          DiagnosticCode.UNKNOWN_NAME,
          token,
          "no element type '%s'".formatted(token.getText()),
          "did you mean 'torch.%s'?".formatted(meant.get()));
      return Optional.empty();
    }
    return Optional.of(new Arg.Symbol(name));
  }

  private Optional<String> string(Token token) {
    try {
      return Optional.of(PythonLiterals.unquote(token.getText()));
    } catch (IllegalArgumentException e) {
      report(DiagnosticCode.SYNTAX, token, "in this string: " + e.getMessage(), "");
      return Optional.empty();
    }
  }
}
