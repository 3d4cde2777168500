package dev.symplan.ir.pt2;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;
import dev.symplan.ir.diag.Span;
import dev.symplan.ir.fx.FxExpr;
import dev.symplan.ir.json.Json;
import java.util.function.Function;

/** The cases of {@code torch._export.serde.schema.Argument}, as expressions of an FX graph. */
final class Arguments {
  private final Names names;

  Arguments(Names names) {
    this.names = names;
  }

  FxExpr expr(Json argument) {
    var union = argument.union();
    var value = union.value();
    return switch (union.name()) {
      case "as_none" -> FxExpr.None.NONE;
      case "as_tensor" -> tensor(value);
      case "as_tensors" -> list(value, this::tensor);
      case "as_nested_tensors" -> list(value, inner -> list(inner, this::tensor));
      case "as_int" -> integer(value);
      case "as_ints" -> list(value, Arguments::integer);
      case "as_int_lists" -> list(value, inner -> list(inner, Arguments::integer));
      case "as_float" -> number(value);
      case "as_floats" -> list(value, Arguments::number);
      case "as_float_lists" -> list(value, inner -> list(inner, Arguments::number));
      case "as_bool" -> bool(value);
      case "as_bools" -> list(value, Arguments::bool);
      case "as_string" -> string(value);
      case "as_strings" -> list(value, Arguments::string);
      case "as_sym_int", "as_sym_float", "as_sym_bool", "as_optional_tensor" -> symbolic(value);
      case "as_sym_ints", "as_sym_floats", "as_sym_bools", "as_optional_tensors" ->
          list(value, this::symbolic);
      case "as_scalar_type" -> torch(Types.dtype(value).torchName());
      case "as_memory_format" -> torch(Types.memoryFormat(value));
      case "as_layout" -> torch(Types.layout(value));
      case "as_device" -> device(value);
      default ->
          throw argument.wrong("arguments of kind '%s' are not supported".formatted(union.name()));
    };
  }

  private FxExpr tensor(Json value) {
    return named(value.get("name"));
  }

  private FxExpr named(Json name) {
    return new FxExpr.Name(names.of(name.text()));
  }

  /** A union of a name and plain values. */
  private FxExpr symbolic(Json value) {
    var union = value.union();
    return union.name().equals("as_name") ? named(union.value()) : expr(value);
  }

  private static FxExpr list(Json value, Function<Json, FxExpr> item) {
    var items = value.items();
    var exprs = ImmutableList.<FxExpr>builderWithExpectedSize(items.size());
    items.forEach(each -> exprs.add(item.apply(each)));
    return new FxExpr.Seq(exprs.build());
  }

  private static FxExpr integer(Json value) {
    return new FxExpr.Int(value.integer());
  }

  /** PyTorch writes the numbers that JSON lacks as strings. */
  private static FxExpr number(Json value) {
    return new FxExpr.Float(
        switch (value.isNumber() ? "" : value.text()) {
          case "Infinity" -> Double.POSITIVE_INFINITY;
          case "-Infinity" -> Double.NEGATIVE_INFINITY;
          case "NaN" -> Double.NaN;
          default -> value.number();
        });
  }

  private static FxExpr bool(Json value) {
    return new FxExpr.Bool(value.bool());
  }

  private static FxExpr string(Json value) {
    return new FxExpr.Str(value.text());
  }

  private static FxExpr torch(String word) {
    return new FxExpr.Name("torch." + word);
  }

  private static FxExpr device(Json value) {
    var keywords = ImmutableMap.<String, FxExpr>builder();
    keywords.put("type", new FxExpr.Str(value.get("type").text()));
    value.find("index").ifPresent(index -> keywords.put("index", integer(index)));
    return new FxExpr.Call("device", ImmutableList.of(), keywords.buildOrThrow(), Span.NONE);
  }
}
