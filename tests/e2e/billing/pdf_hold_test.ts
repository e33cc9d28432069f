import { assertEquals } from "@std/assert";
import { model, startGateway, upstream } from "../../support/gateway.ts";
import { json, startUpstream } from "../../upstream/mod.ts";
import { prompt, WHOLE } from "../../upstream/replies.ts";

Deno.test("the hold of a small PDF covers all of its pages", async () => {
  await using server = startUpstream(() => json(WHOLE.messages));
  await using gateway = startGateway({
    upstreams: { one: upstream("anthropic", server.url) },
    models: [model("acme/one", [{ upstream: "one", model: "real-one", protocol: "messages" }], {
      pricing: { prompt: "0.000001", completion: "0" },
    })],
    // Enough for 20 pages.
    groups: { default: { budget: { usd: "0.1", period: "total" } } },
  });
  const statusOf = async (pages: number) => {
    const data = btoa(`%PDF-1.4\n${"<</Type/Page>>\n".repeat(pages)}`);
    const source = { type: "base64", media_type: "application/pdf", data };
    const messages = [{ role: "user", content: [{ type: "document", source }] }];
    const response = await gateway.ask("messages", prompt("messages", { messages }));
    await response.body?.cancel();
    return response.status;
  };
  assertEquals([await statusOf(10), await statusOf(90)], [200, 429]);
});
