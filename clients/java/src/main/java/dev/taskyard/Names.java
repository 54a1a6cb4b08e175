package dev.taskyard;

import java.security.SecureRandom;
import java.util.HexFormat;

/** Resource names and the ids of requests. */
final class Names {
  private static final SecureRandom RANDOM = new SecureRandom();

  private Names() {}

  static String tenant(String tenant) {
    return tenant.startsWith("tenants/") ? tenant : "tenants/" + tenant;
  }

  static String task(String tenant, String task) {
    return task.startsWith("tenants/") ? task : tenant(tenant) + "/tasks/" + task;
  }

  /** A unique id that begins with the time, so that ids made together are stored together in the server's index. */
  static String newRequestId() {
    byte[] random = new byte[10];
    RANDOM.nextBytes(random);
    return String.format("%012x", System.currentTimeMillis()) + HexFormat.of().formatHex(random);
  }
}
