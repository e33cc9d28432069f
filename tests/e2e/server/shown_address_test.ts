import { assertEquals } from "@std/assert";
import { startGateway } from "../../support/gateway.ts";

Deno.test("only a caller with a valid key may ask for its client address", async () => {
  await using gateway = startGateway({ trusted_proxies: ["127.0.0.1"] });
  const shown = async (path: string, headers: Record<string, string>) => {
    const response = await fetch(gateway.url + path, { headers });
    await response.body?.cancel();
    return response.headers.get("x-sluice-client-address");
  };
  const show = { "x-sluice-show": "client-address", "x-forwarded-for": "203.0.113.9" };
  const good = { authorization: `Bearer ${gateway.key.key}` };
  assertEquals(await shown("/v1/models", { ...good, ...show }), "203.0.113.9");
  assertEquals(await shown("/v1/models/none/such", { ...good, ...show }), "203.0.113.9");
  assertEquals(await shown("/v1/models", { ...good, "x-forwarded-for": "203.0.113.9" }), null);
  assertEquals(await shown("/v1/models", { ...good, ...show, "x-sluice-show": "everything" }), null);
  assertEquals(await shown("/v1/models", { ...show, authorization: "Bearer wrong" }), null);
  assertEquals(await shown("/healthz", show), null);
});
