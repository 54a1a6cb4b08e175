/** TLS with a trusted and an untrusted CA, against a TLS port in front of the real suite. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createServer as createTlsServer } from "node:tls";
import { connect, type AddressInfo } from "node:net";
import { test } from "node:test";

import { Client, errors, external, findContext } from "../src/index.js";

// Issued for localhost by themselves; made for tests only.
const OURS = process.env["TEST_TLS"] ?? "../python/tests/tls";

test("a server with a certificate of the given CA is trusted, any other is CertificateUntrusted", async () => {
  const { address, key } = findContext();
  const port = Number(address.split(":").pop());
  const front = createTlsServer(
    { cert: readFileSync(`${OURS}/cert.pem`), key: readFileSync(`${OURS}/key.pem`), ALPNProtocols: ["h2"] },
    (socket) => {
      const inner = connect(port, "127.0.0.1");
      socket.on("error", () => inner.destroy()).pipe(inner).on("error", () => socket.destroy()).pipe(socket);
    },
  );
  front.on("tlsClientError", () => undefined);
  await new Promise<void>((resolve) => front.listen(0, "127.0.0.1", resolve));
  const secure = `localhost:${(front.address() as AddressInfo).port}`;
  const trusted = new Client({ address: secure, key, tlsCa: `${OURS}/cert.pem` });
  await trusted.create(external());
  trusted.close();
  const unknown = new Client({ address: `https://${secure}`, key });
  await assert.rejects(unknown.get("x"), (error) => {
    assert.ok(error instanceof errors.CertificateUntrusted, String(error));
    assert.match(error.message, /is not trusted .*TASKYARD_TLS_CA/);
    return true;
  });
  unknown.close();
  front.close();
});
