/** Gateways with alerts, as processes. */
import type { JsonObject } from "../../../lib/json/mod.ts";
import { isStarved } from "../../support/databases.ts";
import type { ReceivedWebhook, WebhookReceiver } from "../../support/webhook_receiver.ts";
import { countedAnswer } from "../../upstream/counted.ts";
import type { FakeUpstream, ScriptedAnswer } from "../../upstream/mod.ts";
import { until } from "../../support/soon.ts";
import { plainModel, plainUpstream } from "../../support/plain_model.ts";

/** Key of the signatures. */
export const SECRET = "0123456789abcdef-of-the-alerts";

/** Variables of a gateway with alerts. */
export function envFor({ url }: WebhookReceiver): Record<string, string> {
  return { ALERT_WEBHOOK: url, ALERT_SECRET: SECRET, CLIENT_KEY: "key-of-the-client", ONE_KEY: "key-of-the-upstream" };
}

/** A model whose answers of 10 tokens cost 1 USD, and a key and a group with budgets. @param parts further members */
export function configWith({ url }: Pick<FakeUpstream, "url">, parts: JsonObject = {}): JsonObject {
  return {
    models: [plainModel({ pricing: { prompt: "0", completion: "0.1" }, targets: [{ upstream: "one", model: "m" }] })],
    upstreams: { one: { ...plainUpstream(url), api_key: { env: "ONE_KEY" } } },
    groups: { team: { budget: { usd: "10", period: "total" } } },
    keys: [{ name: "client", key: { env: "CLIENT_KEY" }, group: "team", budget: { usd: "4", period: "total" } }],
    alerts: { webhook: { env: "ALERT_WEBHOOK" }, secret: { env: "ALERT_SECRET" } },
    ...parts,
  };
}

/** An answer of 10 tokens. */
export function counted(): ScriptedAnswer {
  return countedAnswer(false, { completion: 10, going: () => Promise.resolve() });
}

/** Asks for one answer. Returns the status. */
export async function ask({ origin }: { origin: string }, model = "acme/one"): Promise<number> {
  const response = await fetch(`${origin}/v1/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: "Bearer key-of-the-client" },
    body: JSON.stringify({ model, max_completion_tokens: 10, messages: [{ role: "user", content: "Hello" }] }),
  });
  const isAgain = isStarved(response.status, await response.text());
  return isAgain ? await ask({ origin }, model) : response.status;
}

/** Waits for this many webhooks of a type, and returns all of that type. */
export async function webhooksOf(
  receiver: WebhookReceiver,
  type: string,
  count: number,
): Promise<ReceivedWebhook[]> {
  const found = () => receiver.received.filter(({ body }) => body.type === type);
  await until(`${count} webhooks ${type}`, () => found().length >= count);
  return found();
}
