package dev.symplan.ir.op;

import com.google.common.base.Ascii;
import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;
import java.util.Arrays;
import java.util.Optional;

/**
 * What a collective does and which parameters it uses, so that no code needs a list of op names.
 *
 * @param params the parameter for each role
 * @param foreign empty for functional collectives, and those of a library of one's own
 */
public record CollectiveSpec(
    Kind kind, ImmutableMap<Role, String> params, Optional<Foreign> foreign) {

  /**
   * What a collective of another library has that PyTorch's functional ones have not. The planner
   * makes a functional one of it.
   *
   * @param algorithm the one that the op's name stands for, as an {@link Role#ALGORITHM}
   * @param scratch the parameter of a tensor that the op overwrites, though its schema does not say
   *     so
   * @param dim the parameter that says along which dimension the ranks' parts lie: its number, or
   *     whether it is the last one; they lie along the first where there is no such parameter
   */
  public record Foreign(
      Optional<String> algorithm, Optional<String> scratch, Optional<String> dim) {}

  /** What moves where. */
  public enum Kind {
    ALL_REDUCE,
    ALL_GATHER,
    REDUCE_SCATTER,
    ALL_TO_ALL,
    BROADCAST,
    /** Known only by its symmetric arguments; a library supplies the implementation. */
    CUSTOM;

    /** {@return whether it combines elements of different ranks} */
    public boolean reduces() {
      return this == ALL_REDUCE || this == REDUCE_SCATTER;
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

  /** What a parameter is for, with the names it has in PyTorch's functional collectives. */
  public enum Role {
    /** The tensor or tensors that each rank sends. */
    OPERAND("input", "inputs"),
    /** The name of the process group. */
    GROUP("group_name"),
    /** The {@link ReduceOp}, by its text. */
    REDUCE_OP("reduce_op"),
    /** The rank, counted within the group, that a broadcast comes from. */
    ROOT("src"),
    /** The number of ranks in the group. */
    GROUP_SIZE("group_size"),
    /** The rows of the operand for each rank of the group; an empty list means equal parts. */
    INPUT_SPLIT_SIZES("input_split_sizes"),
    /** The rows of the result from each rank of the group; an empty list means equal parts. */
    OUTPUT_SPLIT_SIZES("output_split_sizes"),
    /** The name of the algorithm that the caller wants; anything else leaves it open. */
    ALGORITHM("config");

    private final ImmutableList<String> torchNames;

    Role(String... torchNames) {
      this.torchNames = ImmutableList.copyOf(torchNames);
    }

    private boolean isNeededBy(Kind kind) {
      return switch (this) {
        case OPERAND, GROUP -> true;
        case REDUCE_OP -> kind.reduces();
        case ROOT -> kind == Kind.BROADCAST;
        case GROUP_SIZE, INPUT_SPLIT_SIZES, OUTPUT_SPLIT_SIZES, ALGORITHM -> false;
      };
    }

    private boolean mayBeIn(Kind kind) {
      return isNeededBy(kind) || (this != REDUCE_OP && this != ROOT);
    }
  }

  /** A collective whose parameters have PyTorch's names. */
  public static CollectiveSpec of(Kind kind) {
    return new CollectiveSpec(kind, ImmutableMap.of(), Optional.empty());
  }

  /** A collective that only a library implements. */
  public static CollectiveSpec custom(String operand, String group) {
    return of(Kind.CUSTOM).with(Role.OPERAND, operand).with(Role.GROUP, group);
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
   * {@return the same with the roles of the schema's parameters that have PyTorch's names}
   *
   * @throws IllegalArgumentException when the schema lacks a parameter that the collective needs
   */
  CollectiveSpec in(OpSchema schema) {
    var all = ImmutableMap.<Role, String>builder();
    for (var role : Role.values()) {
      Optional<String> named = Optional.ofNullable(params.get(role));
      named.ifPresent(schema::indexOf);
      named
          .or(() -> role.torchNames.stream().filter(schema::hasParam).findFirst())
          .filter(_ -> role.mayBeIn(kind))
          .ifPresentOrElse(
              param -> all.put(role, param),
              () -> {
                if (role.isNeededBy(kind) && !(role == Role.REDUCE_OP && foreign.isPresent())) {
                  throw new IllegalArgumentException(
                      "%s: no parameter is the %s of the %s"
                          .formatted(schema.name(), Ascii.toLowerCase(role.name()), kind.text()));
                }
              });
    }
    return new CollectiveSpec(kind, all.buildOrThrow(), foreign);
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

  /**
   * {@return the role of a parameter}
   *
   * @throws IllegalArgumentException when it has none
   */
  public Role role(String param) {
    return params.entrySet().stream()
        .filter(entry -> entry.getValue().equals(param))
        .findFirst()
        .orElseThrow(() -> new IllegalArgumentException(param + " has no role"))
        .getKey();
  }

  /** {@return the parameter of the tensors that each rank sends} */
  public String operand() {
    return param(Role.OPERAND);
  }

  /** {@return the parameter that names the process group} */
  public String group() {
    return param(Role.GROUP);
  }
}
