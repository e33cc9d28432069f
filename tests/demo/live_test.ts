import { assert, assertEquals } from "@std/assert";
import { seeded } from "../support/random.ts";
import { startDemoGateway } from "./gateway.ts";
import { sendBurst } from "./live.ts";
import { startVendors } from "./vendors.ts";

Deno.test("the clients of the demo get answers, failovers and refusals from its gateway", async () => {
  await using demo = await startDemoGateway();
  const { url: origin, store: { ledger }, filled: { entries, secrets } } = demo;
  const statuses = await sendBurst(20, { origin, secrets, random: seeded(1) });
  assertEquals([...new Set(statuses)].sort(), [200, 429]);
  await demo.gateway.ledger.flush();
  const live = await ledger.entries({ after: entries.length, limit: 100 });
  assertEquals(live.length, 20);
  assert(
    live.some(({ model, upstream, attempts }) => [model, upstream, attempts].join() === "open/kestrel-70b,meridian,2"),
  );
  assert(live.every(({ status, details }) => status === 200 || details?.reason?.code === "budget"));
});

Deno.test("the vendors of the demo answer the gateway's probes", async () => {
  await using vendors = startVendors();
  for (const url of Object.values(vendors.urls)) {
    assertEquals((await (await fetch(`${url}/v1/models`)).json()).object, "list");
    const bare = await fetch(`${url}/v1/messages`, { method: "POST", body: "{}" });
    assertEquals([bare.status, (await bare.json()).error.param], [400, "model"]);
  }
});
