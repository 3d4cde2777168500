package dev.symplan.ir.op;

import com.google.common.base.Ascii;
import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;
import java.util.Arrays;
import java.util.Comparator;
import java.util.Optional;

/**
 * The meaning of a collective and its parameters, so that no code needs a list of op names.
 *
 * @param params the parameter for each role
 * @param foreign empty for functional collectives, and those of a library of one's own
 */
public record CollectiveSpec(
    Kind kind, ImmutableMap<Role, String> params, Optional<Foreign> foreign) {

  /** The group of all ranks, which is that of an op without a parameter for the group. */
  public static final String WORLD = "world";

  /**
   * Marks a collective of another library. The planner makes a functional one of it.
   *
   * @param algorithm the one that the op's name stands for, as an {@link Role#ALGORITHM}
   */
  public record Foreign(Optional<String> algorithm) {}

  /** The kind of a collective. */
  public enum Kind {
    ALL_REDUCE,
    ALL_GATHER,
    REDUCE_SCATTER,
    ALL_TO_ALL,
    BROADCAST,
    /** Ranks send their operands along pairs; whom nobody sends to gets zeros. */
    COLLECTIVE_PERMUTE,
    /** Known only by its symmetric arguments; a library supplies the implementation. */
    CUSTOM;

    /** {@return whether it combines elements of different ranks} */
    public boolean reduces() {
      return this == ALL_REDUCE || this == REDUCE_SCATTER;
    }

    /**
     * {@return whether a result has the type of its operand: elements are taken as they lie, in any
     * layout without gaps}
     */
    public boolean keepsLayout() {
      return this == ALL_REDUCE || this == BROADCAST || this == COLLECTIVE_PERMUTE;
    }

    /** {@return the name in files and options, for example {@code all_reduce}} */
    public String text() {
      return Ascii.toLowerCase(name());
    }

    /** {@return the kind of this name} */
    public static Optional<Kind> ofText(String text) {
      return Arrays.stream(values()).filter(kind -> kind.text().equals(text)).findFirst();
    }
  }

  /** The role of a parameter, with its names in PyTorch and vLLM. */
  public enum Role {
    /** The tensor or tensors that each rank sends. */
    OPERAND("input", "inputs"),
    /** The name of the process group. */
    GROUP("group_name"),
    /** The {@link ReduceOp}, by its text. */
    REDUCE_OP("reduce_op"),
    /**
     * The rank, counted within the group, that a broadcast comes from, or the only one that a
     * reduction gives its result to.
     */
    ROOT("src", "root"),
    /** The {@link Permutation}: pairs of ranks, counted within the group. */
    PAIRS("source_target_pairs"),
    /** The number of ranks in the group. */
    GROUP_SIZE("group_size", "world_size"),
    /** The rows of the operand for each rank of the group; an empty list means equal parts. */
    INPUT_SPLIT_SIZES("input_split_sizes"),
    /** The rows of the result from each rank of the group; an empty list means equal parts. */
    OUTPUT_SPLIT_SIZES("output_split_sizes"),
    /** The name of the algorithm that the caller wants; anything else leaves it open. */
    ALGORITHM("config"),
    /**
     * The dimension along which the ranks' parts lie: its number, or whether it is the last one.
     * Without such a parameter, it is the first.
     */
    DIM("dim", "gather_dim", "scatter_dim", "split_last_dim"),
    /** The dimension along which an all_to_all splits its operand; without one, the first. */
    SPLIT_DIM("split_dim"),
    /** The dimension along which an all_to_all puts together what it gets. */
    CONCAT_DIM("concat_dim"),
    /** The element type of what a reduce_scatter gives; without one, it is that of its operand. */
    DTYPE("dtype"),
    /** A tensor that the op overwrites, even if its schema does not say so. */
    SCRATCH("symm_buffer");

    private final ImmutableList<String> torchNames;

    Role(String... torchNames) {
      this.torchNames = ImmutableList.copyOf(torchNames);
    }

    private Optional<String> torchName(OpSchema schema) {
      return torchNames.stream()
          .filter(schema::hasParam)
          .filter(name -> this != OPERAND || holdsTensors(schema, name))
          .findFirst();
    }

    private static boolean holdsTensors(OpSchema schema, String name) {
      return schema.params().get(schema.indexOf(name)).type().holdsTensors();
    }

    private boolean isNeededBy(Kind kind) {
      return switch (this) {
        case OPERAND -> true;
        case REDUCE_OP -> kind.reduces();
        case ROOT -> kind == Kind.BROADCAST;
        case PAIRS -> kind == Kind.COLLECTIVE_PERMUTE;
        case GROUP,
            GROUP_SIZE,
            INPUT_SPLIT_SIZES,
            OUTPUT_SPLIT_SIZES,
            ALGORITHM,
            DIM,
            SPLIT_DIM,
            CONCAT_DIM,
            DTYPE,
            SCRATCH ->
            false;
      };
    }

    private boolean mayBeIn(Kind kind) {
      return isNeededBy(kind)
          || switch (this) {
            case REDUCE_OP, PAIRS -> false;
            case ROOT -> kind == Kind.ALL_REDUCE;
            case DTYPE -> kind == Kind.REDUCE_SCATTER;
            case OPERAND,
                GROUP,
                GROUP_SIZE,
                INPUT_SPLIT_SIZES,
                OUTPUT_SPLIT_SIZES,
                ALGORITHM,
                DIM,
                SPLIT_DIM,
                CONCAT_DIM,
                SCRATCH ->
                true;
          };
    }
  }

  /** A collective whose parameters have PyTorch's names. */
  public static CollectiveSpec of(Kind kind) {
    return new CollectiveSpec(kind, ImmutableMap.of(), Optional.empty());
  }

  /** The same with a parameter of another name. */
  public CollectiveSpec with(Role role, String param) {
    return new CollectiveSpec(
        kind,
        ImmutableMap.<Role, String>builder().putAll(params).put(role, param).buildKeepingLast(),
        foreign);
  }

  /** The same as another library has it. */
  public CollectiveSpec with(Foreign form) {
    return new CollectiveSpec(kind, params, Optional.of(form));
  }

  /**
   * {@return the same with the roles of the schema's parameters} Their names say them; else, the
   * operand is the first tensor that is not written, and the group is named by the only {@code str}
   * without another role.
   *
   * @throws IllegalArgumentException when the schema lacks a parameter that the collective needs,
   *     or has several that could name the group
   */
  CollectiveSpec in(OpSchema schema) {
    var all = ImmutableMap.<Role, String>builder();
    for (var role : Role.values()) {
      Optional<String> named = Optional.ofNullable(params.get(role));
      named.ifPresent(schema::indexOf);
      named
          .or(() -> role.torchName(schema))
          .or(() -> role == Role.OPERAND ? firstTensor(schema) : Optional.empty())
          .filter(_ -> role.mayBeIn(kind))
          .ifPresentOrElse(
              param -> all.put(role, param),
              () -> {
                if (role.isNeededBy(kind) && !(role == Role.REDUCE_OP && foreign.isPresent())) {
                  throw new IllegalArgumentException(
                      role == Role.OPERAND
                          ? "%s takes no tensor that its ranks could exchange"
                              .formatted(schema.name())
                          : "%s: no parameter is the %s of the %s"
                              .formatted(
                                  schema.name(), Ascii.toLowerCase(role.name()), kind.text()));
                }
              });
    }
    var found = new CollectiveSpec(kind, all.buildOrThrow(), foreign);
    return found.has(Role.GROUP)
        ? found
        : found.groupParam(schema).map(param -> found.with(Role.GROUP, param)).orElse(found);
  }

  private static Optional<String> firstTensor(OpSchema schema) {
    return schema.params().stream()
        .filter(param -> param.type().holdsTensors())
        .min(Comparator.comparing(param -> param.alias().write()))
        .map(Param::name);
  }

  /** {@return the parameter that names the group} An op without one is for all ranks. */
  private Optional<String> groupParam(OpSchema schema) {
    var free =
        schema.params().stream().filter(param -> !params.containsValue(param.name())).toList();
    var strings = free.stream().filter(param -> param.type() == SchemaType.Base.STRING).toList();
    if (strings.size() > 1) {
      throw new IllegalArgumentException(
          "%s has %s parameters of type str, and one names its group"
              .formatted(schema.name(), strings.size()));
    }
    var other =
        free.stream()
            .filter(param -> mayHoldGroup(param.type()) || param.name().contains("group"))
            .findFirst();
    if (strings.isEmpty() && other.isPresent()) {
      throw new IllegalArgumentException(
          "%s: '%s' is of type %s; a group is named by a str"
              .formatted(schema.name(), other.get().name(), other.get().type()));
    }
    return strings.stream().map(Param::name).findFirst();
  }

  private static boolean mayHoldGroup(SchemaType type) {
    return switch (type) {
      case SchemaType.Base base -> base == SchemaType.Base.STRING || base == SchemaType.Base.ANY;
      case SchemaType.OptionalOf(var element) -> mayHoldGroup(element);
      case SchemaType.Named _ -> true;
      case SchemaType.ListOf _, SchemaType.TupleOf _, SchemaType.GenericOf _ -> false;
    };
  }

  public boolean has(Role role) {
    return params.containsKey(role);
  }

  /**
   * {@return the parameter that has a role}
   *
   * @throws IllegalArgumentException when none has
   */
  public String param(Role role) {
    return Optional.ofNullable(params.get(role))
        .orElseThrow(() -> new IllegalArgumentException(kind.text() + " has no " + role));
  }

  /** {@return the parameter of the tensors that each rank sends} */
  public String operand() {
    return param(Role.OPERAND);
  }

  /** {@return the parameter that names the process group; empty for the group of all ranks} */
  public Optional<String> group() {
    return Optional.ofNullable(params.get(Role.GROUP));
  }
}
