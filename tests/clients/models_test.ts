import { assert, assertEquals } from "@std/assert";
import { sharedGateway } from "./gateway.ts";
import { testAnthropic, testOpenai } from "./sdks.ts";
import { ECHO } from "./upstreams.ts";

const TARGETS = [{ upstream: "embedded", model: "echo" }];
const PRICING = { prompt: "0", completion: "0" };

const gateway = sharedGateway({
  config: {
    models: [{ id: "acme/parrot", created: 1_700_000_000, context_length: 4096, pricing: PRICING, targets: TARGETS }],
  },
});

testOpenai("models are listed and found", gateway, async ({ client }) => {
  const listed = await Array.fromAsync(client.models.list());
  assertEquals(listed.map(({ id }) => id).sort(), [
    "acme/parrot",
    "sluice/canvas",
    ECHO,
    "sluice/embed",
    "sluice/rerank",
  ]);
  for (const model of listed) {
    assertEquals(model.object, "model");
    assertEquals(JSON.parse(JSON.stringify(await client.models.retrieve(model.id))), JSON.parse(JSON.stringify(model)));
  }
  const parrot = listed.find(({ id }) => id === "acme/parrot");
  assertEquals([parrot?.created, parrot?.owned_by], [1_700_000_000, "acme"]);
});

testAnthropic("models are listed and found", gateway, async ({ client }) => {
  const listed = await Array.fromAsync(client.models.list({ limit: 1000 }));
  assertEquals(listed.map(({ id }) => id).sort(), ["acme/parrot", ECHO]);
  for (const model of listed) {
    assertEquals([model.type, Number.isNaN(Date.parse(model.created_at))], ["model", false]);
    assertEquals(JSON.parse(JSON.stringify(await client.models.retrieve(model.id))), JSON.parse(JSON.stringify(model)));
  }
  assert(listed.every(({ display_name }) => display_name !== ""));
});
