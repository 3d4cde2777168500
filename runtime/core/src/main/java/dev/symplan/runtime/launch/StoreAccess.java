package dev.symplan.runtime.launch;

import java.util.Map;
import java.util.Optional;

/**
 * The access to the store of a run: which processes may join, and where rank 0 listens.
 *
 * @param secret the secret that every process of the run knows
 * @param insecure whether other hosts may come in without a secret
 * @param address of rank 0's host, where rank 0 listens; empty for the one that the others connect
 *     to
 */
public record StoreAccess(Optional<Secret> secret, boolean insecure, String address) {

  /** Rank 0 listens at this address, if it differs from the one that the others connect to. */
  public static final String ADDRESS = "SYMPLAN_STORE_ADDRESS";

  /** Processes of one host, without a secret. */
  public static final StoreAccess DEFAULT = new StoreAccess(Optional.empty(), false, "");

  /**
   * {@return the access that the environment describes}
   *
   * @param variables as of {@link System#getenv()}
   * @throws dev.symplan.runtime.failure.RunException when the secret cannot be had
   */
  static StoreAccess of(Map<String, String> variables) {
    return new StoreAccess(
        Secret.of(variables), false, variables.getOrDefault(ADDRESS, "").strip());
  }

  /** {@return the same with this secret} */
  public StoreAccess withSecret(Secret newSecret) {
    return new StoreAccess(Optional.of(newSecret), insecure, address);
  }

  /** {@return the same, whether other hosts may come in without a secret or not} */
  public StoreAccess withInsecure(boolean value) {
    return new StoreAccess(secret, value, address);
  }
}
