package dev.symplan.ir.op;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;
import com.google.common.collect.ImmutableSet;
import com.google.common.primitives.Ints;
import dev.symplan.ir.Arg;
import dev.symplan.ir.DType;
import dev.symplan.ir.PythonLiterals;
import java.util.HashSet;
import java.util.List;
import java.util.Optional;
import java.util.OptionalInt;
import org.antlr.v4.runtime.ParserRuleContext;
import org.antlr.v4.runtime.Token;
import org.jspecify.annotations.Nullable;

/** Makes a schema of a parsed text, and checks what the grammar leaves open. */
final class SchemaReader {

  /** Classes that PyTorch's own schemas name and that no graph passes. */
  private static final ImmutableSet<String> OTHER_TYPES =
      ImmutableSet.of(
          "None",
          "Quantizer",
          "Capsule",
          "AnyClassType",
          "AnyEnumType",
          "AnyListType",
          "AnyTupleType",
          "PyObject");

  /** The constants of {@code at::Reduction}, which schemas name and pass as int. */
  private static final ImmutableMap<String, Long> REDUCTIONS =
      ImmutableMap.of("None", 0L, "Mean", 1L, "Sum", 2L);

  /** Names of element types that defaults use besides those of {@link DType}. */
  private static final ImmutableMap<String, DType> DTYPE_ALIASES =
      ImmutableMap.of(
          "float", DType.F32, "double", DType.F64, "half", DType.F16, "long", DType.I64, "int",
          DType.I32);

  /** {@code c10::ScalarType} */
  private static final ImmutableMap<Long, DType> SCALAR_TYPES =
      ImmutableMap.<Long, DType>builder()
          .put(0L, DType.U8)
          .put(1L, DType.I8)
          .put(2L, DType.I16)
          .put(3L, DType.I32)
          .put(4L, DType.I64)
          .put(5L, DType.F16)
          .put(6L, DType.F32)
          .put(7L, DType.F64)
          .put(8L, DType.C32)
          .put(9L, DType.C64)
          .put(10L, DType.C128)
          .put(11L, DType.BOOL)
          .put(15L, DType.BF16)
          .buildOrThrow();

  /** {@code c10::MemoryFormat} */
  private static final ImmutableMap<Long, String> MEMORY_FORMATS =
      ImmutableMap.of(
          0L,
          "contiguous_format",
          1L,
          "preserve_format",
          2L,
          "channels_last",
          3L,
          "channels_last_3d");

  private static final ImmutableMap<String, SchemaType> BASE_TYPES = baseTypes();

  private final String text;

  SchemaReader(String text) {
    this.text = text;
  }

  private static ImmutableMap<String, SchemaType> baseTypes() {
    var types = ImmutableMap.<String, SchemaType>builder();
    for (var base : SchemaType.Base.values()) {
      types.put(base.toString(), base);
    }
    return types.buildOrThrow();
  }

  OpSchema schema(SchemaTextParser.SchemaContext schema) {
    var name = OpName.parse(slice(schema.name));
    var params = ImmutableList.<Param>builderWithExpectedSize(schema.params.size());
    var names = new HashSet<String>();
    @Nullable Token star = null;
    for (var param : schema.params) {
      if (param.varargs != null) {
        throw error(param.varargs, "varargs are not supported", "declare a list: Tensor[] inputs");
      }
      if (param.star != null) {
        if (star != null) {
          throw error(param.star, "a second '*'", "");
        }
        star = param.star;
      } else {
        if (!names.add(param.name.getText())) {
          throw error(param.name, "a second parameter '%s'".formatted(param.name.getText()), "");
        }
        params.add(param(param, star != null));
      }
    }
    if (star != null && schema.params.getLast().star != null) {
      throw error(star, "no parameter follows the '*'", "");
    }
    return results(name, params.build(), schema.gives);
  }

  private Param param(SchemaTextParser.ParamContext param, boolean keywordOnly) {
    var type = type(param.of);
    var alias = alias(param.of);
    if (param.value == null) {
      return new Param(param.name.getText(), type, alias, Optional.empty(), "", keywordOnly);
    }
    return new Param(
        param.name.getText(),
        type,
        alias,
        Optional.of(defaultValue(type, param.value)),
        slice(param.value),
        keywordOnly);
  }

  private OpSchema results(
      OpName name, ImmutableList<Param> params, SchemaTextParser.ResultsContext gives) {
    if (gives.varargs != null) {
      throw error(gives.varargs, "a varying number of results is not supported", "");
    }
    var of = gives.list.of;
    boolean parenthesized = of.tuple != null && of.suffixes.isEmpty() && of.inner == null;
    if (!parenthesized) {
      return new OpSchema(name, params, ImmutableList.of(result(gives.list)), false);
    }
    if (gives.list.name != null) {
      throw error(gives.list.name, "a name after the list of results", "");
    }
    var results = ImmutableList.<SchemaResult>builderWithExpectedSize(of.elements.size());
    of.elements.forEach(element -> results.add(result(element)));
    return new OpSchema(name, params, results.build(), true);
  }

  private SchemaResult result(SchemaTextParser.ResultContext result) {
    return new SchemaResult(
        result.name == null ? "" : result.name.getText(), type(result.of), alias(result.of));
  }

  private SchemaType type(SchemaTextParser.TypeContext context) {
    var type = innerType(context);
    for (var suffix : context.suffixes) {
      type =
          suffix.optional != null
              ? new SchemaType.OptionalOf(type)
              : new SchemaType.ListOf(type, listSize(suffix.size));
    }
    return type;
  }

  private OptionalInt listSize(@Nullable Token size) {
    if (size == null) {
      return OptionalInt.empty();
    }
    @Nullable Integer value = Ints.tryParse(size.getText());
    if (value == null || value < 1 || value > 1024) {
      throw error(size, "a list of %s elements".formatted(size.getText()), "");
    }
    return OptionalInt.of(value);
  }

  private SchemaType innerType(SchemaTextParser.TypeContext context) {
    if (context.generic != null) {
      return new SchemaType.GenericOf(context.generic.getText(), elements(context));
    }
    if (context.tuple != null) {
      if (context.elements.isEmpty()) {
        throw error(context.tuple, "a tuple type without elements", "");
      }
      return new SchemaType.TupleOf(elements(context));
    }
    var first = context.base.getFirst();
    var name = text.substring(first.getStartIndex(), context.base.getLast().getStopIndex() + 1);
    @Nullable SchemaType base = BASE_TYPES.get(name);
    return base != null ? base : named(first, name);
  }

  /** A class of a library, or a type variable, which is a lower-case word. */
  private SchemaType named(Token at, String name) {
    for (var base : BASE_TYPES.keySet()) {
      if (base.equalsIgnoreCase(name)) {
        throw error(at, "no type '%s'".formatted(name), "did you mean '%s'?".formatted(base));
      }
    }
    if (name.indexOf('.') < 0
        && !OTHER_TYPES.contains(name)
        && !Character.isLowerCase(name.charAt(0))) {
      throw error(
          at,
          "no type '%s'".formatted(name),
          "types are those of PyTorch's schemas: Tensor, int, SymInt, float, bool, Scalar, str, …");
    }
    return new SchemaType.Named(name);
  }

  private ImmutableList<SchemaType> elements(SchemaTextParser.TypeContext context) {
    var elements = ImmutableList.<SchemaType>builderWithExpectedSize(context.elements.size());
    for (var element : context.elements) {
      if (element.name != null) {
        throw error(element.name, "a name inside a type", "");
      }
      if (alias(element.of).isPresent()) {
        throw error(
            element.getStart(), "an alias annotation inside %s".formatted(slice(context)), "");
      }
      elements.add(type(element.of));
    }
    return elements.build();
  }

  private AliasInfo alias(SchemaTextParser.TypeContext type) {
    if (type.inner != null && type.outer != null) {
      throw error(type.outer.getStart(), "a second alias annotation on one type", "");
    }
    var context = type.inner != null ? type.inner : type.outer;
    if (context == null) {
      return AliasInfo.NONE;
    }
    var before = names(context.before.names);
    return new AliasInfo(
        before,
        context.write != null,
        context.after == null ? before : names(context.after.names),
        context == type.outer);
  }

  private static ImmutableSet<String> names(List<Token> tokens) {
    return tokens.stream().map(Token::getText).collect(ImmutableSet.toImmutableSet());
  }

  private Arg defaultValue(SchemaType type, SchemaTextParser.LiteralContext literal) {
    var fitted = ArgBinder.fit(type, literal(type, literal));
    if (fitted == null) {
      throw error(literal.getStart(), "'%s' is not a valid %s".formatted(slice(literal), type), "");
    }
    return fitted;
  }

  private Arg literal(SchemaType type, SchemaTextParser.LiteralContext literal) {
    if (literal.open != null) {
      var element = type instanceof SchemaType.ListOf list ? list.element() : SchemaType.Base.ANY;
      return new Arg.Seq(
          literal.items.stream()
              .map(item -> literal(element, item))
              .collect(ImmutableList.toImmutableList()));
    }
    var token = literal.token;
    var word = token.getText();
    return switch (token.getType()) {
      case SchemaTextParser.INT -> number(type, token);
      case SchemaTextParser.FLOAT -> new Arg.Float(PythonLiterals.parseFloat(word));
      case SchemaTextParser.STRING -> new Arg.Str(string(token));
      case SchemaTextParser.TRUE -> new Arg.Bool(true);
      case SchemaTextParser.FALSE -> new Arg.Bool(false);
      case SchemaTextParser.NONE -> Arg.None.NONE;
      default -> constant(type, token);
    };
  }

  /** An integer; PyTorch prints defaults of enumerations as their numbers in {@code c10}. */
  private Arg number(SchemaType type, Token token) {
    long number = integer(token);
    var base = type instanceof SchemaType.OptionalOf(SchemaType of) ? of : type;
    if (base == SchemaType.Base.SCALAR_TYPE && SCALAR_TYPES.get(number) instanceof DType dtype) {
      return new Arg.Dtype(dtype);
    }
    if (base == SchemaType.Base.MEMORY_FORMAT
        && MEMORY_FORMATS.get(number) instanceof String format) {
      return new Arg.Symbol(format);
    }
    return new Arg.Int(number);
  }

  private Arg constant(SchemaType type, Token token) {
    var word = token.getText();
    if (type == SchemaType.Base.INT) {
      @Nullable Long reduction = REDUCTIONS.get(word);
      if (reduction == null) {
        throw error(token, "no constant '%s'".formatted(word), "ints may be Mean or Sum");
      }
      return new Arg.Int(reduction);
    }
    if (type == SchemaType.Base.SCALAR_TYPE
        || type instanceof SchemaType.OptionalOf(SchemaType of)
            && of == SchemaType.Base.SCALAR_TYPE) {
      @Nullable DType alias = DTYPE_ALIASES.get(word);
      var dtype = alias != null ? Optional.of(alias) : DType.ofTorchName(word);
      return new Arg.Dtype(
          dtype.orElseThrow(() -> error(token, "no element type '%s'".formatted(word), "")));
    }
    return word.equals("inf") || word.equals("nan")
        ? new Arg.Float(PythonLiterals.parseFloat(word))
        : new Arg.Symbol(word);
  }

  private long integer(Token token) {
    try {
      return Long.parseLong(token.getText());
    } catch (NumberFormatException e) {
      throw error(token, "'%s' does not fit 64 bits".formatted(token.getText()), "");
    }
  }

  private String string(Token token) {
    try {
      return PythonLiterals.unquote(token.getText());
    } catch (IllegalArgumentException e) {
      throw error(token, String.valueOf(e.getMessage()), "");
    }
  }

  private String slice(ParserRuleContext context) {
    return text.substring(context.start.getStartIndex(), context.stop.getStopIndex() + 1);
  }

  private SchemaSyntaxException error(Token at, String problem, String hint) {
    int start = at.getStartIndex();
    return new SchemaSyntaxException(text, start, at.getStopIndex() + 1 - start, problem, hint);
  }
}
