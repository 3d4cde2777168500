package dev.symplan.ir;

import com.google.common.collect.ImmutableMap;
import java.util.Arrays;
import java.util.Optional;
import java.util.function.Function;

/**
 * Element types, with PyTorch's short names ({@code torch.utils._dtype_abbrs}) and long names
 * ({@code torch.float32}).
 */
public enum DType {
  F64("f64", "float64", 8, Kind.FLOAT),
  F32("f32", "float32", 4, Kind.FLOAT),
  F16("f16", "float16", 2, Kind.FLOAT),
  BF16("bf16", "bfloat16", 2, Kind.FLOAT),
  F8E4M3FN("f8e4m3fn", "float8_e4m3fn", 1, Kind.FLOAT),
  F8E5M2("f8e5m2", "float8_e5m2", 1, Kind.FLOAT),
  F8E4M3FNUZ("f8e4m3fnuz", "float8_e4m3fnuz", 1, Kind.FLOAT),
  F8E5M2FNUZ("f8e5m2fnuz", "float8_e5m2fnuz", 1, Kind.FLOAT),
  F8E8M0FNU("f8e8m0fnu", "float8_e8m0fnu", 1, Kind.FLOAT),
  I64("i64", "int64", 8, Kind.INTEGER),
  I32("i32", "int32", 4, Kind.INTEGER),
  I16("i16", "int16", 2, Kind.INTEGER),
  I8("i8", "int8", 1, Kind.INTEGER),
  U64("u64", "uint64", 8, Kind.INTEGER),
  U32("u32", "uint32", 4, Kind.INTEGER),
  U16("u16", "uint16", 2, Kind.INTEGER),
  U8("u8", "uint8", 1, Kind.INTEGER),
  BOOL("b8", "bool", 1, Kind.BOOL),
  C32("c32", "complex32", 4, Kind.COMPLEX),
  C64("c64", "complex64", 8, Kind.COMPLEX),
  C128("c128", "complex128", 16, Kind.COMPLEX);

  /** Families of element types, in PyTorch's order of type promotion. */
  public enum Kind {
    BOOL,
    INTEGER,
    FLOAT,
    COMPLEX
  }

  private static final ImmutableMap<String, DType> BY_SHORT_NAME = index(DType::shortName);
  private static final ImmutableMap<String, DType> BY_TORCH_NAME = index(DType::torchName);

  private final String shortName;
  private final String torchName;
  private final int bytes;
  private final Kind kind;

  DType(String shortName, String torchName, int bytes, Kind kind) {
    this.shortName = shortName;
    this.torchName = torchName;
    this.bytes = bytes;
    this.kind = kind;
  }

  private static ImmutableMap<String, DType> index(Function<DType, String> name) {
    return Arrays.stream(values()).collect(ImmutableMap.toImmutableMap(name, d -> d));
  }

  /** {@return the type called so in a graph, as {@code bf16}} */
  public static Optional<DType> ofShortName(String name) {
    return Optional.ofNullable(BY_SHORT_NAME.get(name));
  }

  /** {@return the type called {@code torch.NAME}, as {@code bfloat16}} */
  public static Optional<DType> ofTorchName(String name) {
    return Optional.ofNullable(BY_TORCH_NAME.get(name));
  }

  public String shortName() {
    return shortName;
  }

  /** {@return the name without its {@code torch.} prefix} */
  public String torchName() {
    return torchName;
  }

  /** {@return the size of one element in bytes} */
  public int bytes() {
    return bytes;
  }

  public Kind kind() {
    return kind;
  }

  /** {@return the type of the parts of a complex type; any other type itself} */
  public DType real() {
    return switch (this) {
      case C32 -> F16;
      case C64 -> F32;
      case C128 -> F64;
      case F64, F32, F16, BF16, F8E4M3FN, F8E5M2, F8E4M3FNUZ, F8E5M2FNUZ, F8E8M0FNU -> this;
      case I64, I32, I16, I8, U64, U32, U16, U8, BOOL -> this;
    };
  }

  public boolean isFloat() {
    return kind == Kind.FLOAT;
  }
}
