package dev.symplan.ir.op;

import com.google.common.collect.ImmutableList;
import java.util.OptionalInt;
import java.util.stream.Collectors;

/** A type of PyTorch's schema language. */
public sealed interface SchemaType {

  /** The types that contain no other. */
  enum Base implements SchemaType {
    TENSOR("Tensor"),
    INT("int"),
    SYM_INT("SymInt"),
    FLOAT("float"),
    SYM_FLOAT("SymFloat"),
    BOOL("bool"),
    SYM_BOOL("SymBool"),
    COMPLEX("complex"),
    NUMBER("Scalar"),
    STRING("str"),
    SCALAR_TYPE("ScalarType"),
    LAYOUT("Layout"),
    DEVICE("Device"),
    MEMORY_FORMAT("MemoryFormat"),
    Q_SCHEME("QScheme"),
    GENERATOR("Generator"),
    DIMNAME("Dimname"),
    STORAGE("Storage"),
    STREAM("Stream"),
    DEVICE_INDEX("DeviceIndex"),
    ANY("Any"),
    NONE("NoneType"),
    CONST_QUANTIZER("ConstQuantizerPtr");

    private final String text;

    Base(String text) {
      this.text = text;
    }

    @Override
    public String toString() {
      return text;
    }
  }

  /** {@code T?} */
  record OptionalOf(SchemaType element) implements SchemaType {
    @Override
    public String toString() {
      return element + "?";
    }
  }

  /** {@code T[]} or {@code T[N]} */
  record ListOf(SchemaType element, OptionalInt size) implements SchemaType {
    @Override
    public String toString() {
      return element + "[" + (size.isPresent() ? size.getAsInt() : "") + "]";
    }
  }

  /** {@code (T, U)} inside an argument or result. */
  record TupleOf(ImmutableList<SchemaType> elements) implements SchemaType {
    @Override
    public String toString() {
      return elements.stream().map(Object::toString).collect(Collectors.joining(", ", "(", ")"));
    }
  }

  /**
   * {@code Dict(K, V)}, {@code Future(T)}, {@code Await(T)}, {@code RRef(T)}, {@code Union(...)}
   */
  record GenericOf(String name, ImmutableList<SchemaType> elements) implements SchemaType {
    @Override
    public String toString() {
      return elements.stream()
          .map(Object::toString)
          .collect(Collectors.joining(", ", name + "(", ")"));
    }
  }

  /** A class ({@code __torch__.torch.classes.c10d.ProcessGroup}) or a type variable ({@code t}). */
  record Named(String name) implements SchemaType {
    @Override
    public String toString() {
      return name;
    }
  }

  /** {@return whether values of this type are tensors, alone or in a list or optional} */
  default boolean holdsTensors() {
    return switch (this) {
      case Base base -> base == Base.TENSOR;
      case OptionalOf(SchemaType element) -> element.holdsTensors();
      case ListOf(SchemaType element, OptionalInt _) -> element.holdsTensors();
      case TupleOf(ImmutableList<SchemaType> elements) ->
          elements.stream().anyMatch(SchemaType::holdsTensors);
      case GenericOf(String _, ImmutableList<SchemaType> elements) ->
          elements.stream().anyMatch(SchemaType::holdsTensors);
      case Named _ -> false;
    };
  }
}
