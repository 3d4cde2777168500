package dev.symplan.ir.pt2;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;
import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.ir.DType;
import dev.symplan.ir.MemorySpace;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.fx.FxType;
import dev.symplan.ir.fx.SizeExpr;
import dev.symplan.ir.fx.SizeReader;
import dev.symplan.ir.json.Json;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/** Tensor types, and the constants of the {@code torch} module, as archives number them. */
final class Types {

  /** {@code torch._export.serde.schema.ScalarType} */
  private static final ImmutableMap<Long, DType> DTYPES =
      ImmutableMap.<Long, DType>builder()
          .put(1L, DType.U8)
          .put(2L, DType.I8)
          .put(3L, DType.I16)
          .put(4L, DType.I32)
          .put(5L, DType.I64)
          .put(6L, DType.F16)
          .put(7L, DType.F32)
          .put(8L, DType.F64)
          .put(9L, DType.C32)
          .put(10L, DType.C64)
          .put(11L, DType.C128)
          .put(12L, DType.BOOL)
          .put(13L, DType.BF16)
          .put(28L, DType.U16)
          .put(29L, DType.F8E4M3FN)
          .put(30L, DType.F8E5M2)
          .put(31L, DType.F8E4M3FNUZ)
          .put(32L, DType.F8E5M2FNUZ)
          .put(33L, DType.F8E8M0FNU)
          .put(34L, DType.U32)
          .put(35L, DType.U64)
          .buildOrThrow();

  private static final long STRIDED = 7;

  private Types() {}

  static DType dtype(Json code) {
    @Nullable DType dtype = DTYPES.get(code.integer());
    if (dtype == null) {
      throw code.wrong("unknown element type %s".formatted(code.integer()));
    }
    return dtype;
  }

  /** {@return the name after {@code torch.}} */
  static String memoryFormat(Json code) {
    return switch ((int) code.integer()) {
      case 1 -> "contiguous_format";
      case 2 -> "channels_last";
      case 3 -> "channels_last_3d";
      case 4 -> "preserve_format";
      default -> throw code.wrong("unknown memory format %s".formatted(code.integer()));
    };
  }

  /** {@return the name after {@code torch.}} */
  static String layout(Json code) {
    if (code.integer() != STRIDED) {
      throw code.wrong(
          "layout %s is not supported: tensors are strided, not sparse".formatted(code.integer()));
    }
    return "strided";
  }

  /** {@return the type, whose sizes may be symbolic} */
  static FxType fxType(Json meta) {
    layout(meta.get("layout"));
    return new FxType.Tensor(
        dtype(meta.get("dtype")),
        sizes(meta.get("sizes")),
        Optional.of(sizes(meta.get("strides"))));
  }

  private static ImmutableList<SizeExpr> sizes(Json sizes) {
    return sizes.items().stream().map(Types::symbolic).collect(ImmutableList.toImmutableList());
  }

  /** {@return a number, or an expression of sizes} */
  static SizeExpr symbolic(Json value) {
    var symbol = value.union();
    return switch (symbol.name()) {
      case "as_int" -> new SizeExpr.Int(symbol.value().integer());
      case "as_bool" -> new SizeExpr.Bool(symbol.value().bool());
      case "as_expr" -> {
        var text = symbol.value().get("expr_str");
        try {
          yield SizeReader.read(text.text());
        } catch (IllegalArgumentException e) {
          throw text.wrong(String.valueOf(e.getMessage()));
        }
      }
      default -> throw value.wrong("'%s' is not a size".formatted(symbol.name()));
    };
  }

  /** {@return the type of a tensor whose sizes are numbers} */
  static TensorType concrete(Json meta) {
    layout(meta.get("layout"));
    try {
      return new TensorType(
          dtype(meta.get("dtype")),
          numbers(meta.get("sizes")),
          numbers(meta.get("strides")),
          MemorySpace.ANY);
    } catch (IllegalArgumentException e) {
      throw meta.wrong(String.valueOf(e.getMessage()));
    }
  }

  private static ImmutableLongArray numbers(Json list) {
    var numbers = ImmutableLongArray.builder();
    list.items().forEach(item -> numbers.add(number(item)));
    return numbers.build();
  }

  static long number(Json value) {
    var number = value.union();
    if (!number.name().equals("as_int")) {
      throw value.wrong("the sizes of a stored tensor are numbers");
    }
    return number.value().integer();
  }
}
