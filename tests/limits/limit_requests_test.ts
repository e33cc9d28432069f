import { assertEquals } from "@std/assert";
import { groupSchema, keyRulesSchema } from "../../lib/config.ts";
import { limitsSchema } from "../../lib/catalog/model.ts";
import { limitOwnerOf, limitRequestsOf } from "../../lib/limits/limit_requests.ts";

type Wish = Parameters<typeof limitRequestsOf>[0];

function wish({ rules = {}, group = {}, limits, tokens = { input: 10, output: 100 } }: {
  rules?: object;
  group?: object;
  limits?: object;
  tokens?: Wish["tokens"];
}): Wish {
  return {
    caller: { keyId: "key_1", groupName: "team", group: groupSchema.parse(group), rules: keyRulesSchema.parse(rules) },
    model: { id: "acme/one", ...(limits !== undefined && { limits: limitsSchema.parse(limits) }) },
    tokens,
  };
}

Deno.test("limitRequestsOf() is empty without limits", () => {
  assertEquals(limitRequestsOf(wish({})), []);
  assertEquals(limitRequestsOf(wish({ rules: { limits: {} }, group: { limits: { report_only: true } } })), []);
});

Deno.test("limitRequestsOf() lists the limits of the key, its group and the model", () => {
  const all = { requests_per_minute: 60, tokens_per_minute: 1000, concurrency: 4 };
  const limitRequests = limitRequestsOf(
    wish({ group: { key_limits: all, limits: { ...all, report_only: true } }, limits: all }),
  );
  assertEquals(
    limitRequests,
    ["key:key_1", "group:team", "model:acme/one"].flatMap((name) => {
      const reportOnly = name === "group:team";
      return [
        { name, unit: "requests" as const, limit: 60, cost: 1, reportOnly },
        { name, unit: "tokens" as const, limit: 1000, cost: 110, reportOnly },
        { name, unit: "concurrency" as const, limit: 4, cost: 1, reportOnly },
      ];
    }),
  );
  assertEquals(limitOwnerOf(limitRequests[0] ?? { name: "" }), { type: "key", id: "key_1" });
  assertEquals(limitOwnerOf({ name: "model:acme/one:free" }), { type: "model", id: "acme/one:free" });
});

Deno.test("limitRequestsOf() replaces the group's key_limits by the key's own limits", () => {
  const limitRequests = limitRequestsOf(wish({
    rules: { limits: { concurrency: 2 } },
    group: { key_limits: { requests_per_minute: 60, concurrency: 1 } },
  }));
  assertEquals(limitRequests, [{ name: "key:key_1", unit: "concurrency", limit: 2, cost: 1, reportOnly: false }]);
});

Deno.test("limitRequestsOf() costs the estimate, at most the limit, or an input above the limit", () => {
  const cases: [input: number, total: number, cost: number][] = [
    [0, 0, 0],
    [10, 100, 100],
    [10, 1000, 1000],
    [10, 1001, 1000],
    [1000, 5000, 1000],
    [1001, 5000, 1001],
    [2000, 2000, 2000],
  ];
  for (const [input, total, cost] of cases) {
    const limitRequests = limitRequestsOf(
      wish({ limits: { tokens_per_minute: 1000 }, tokens: { input, output: total - input } }),
    );
    assertEquals(limitRequests.map((limitRequest) => limitRequest.cost), [cost], `${input} of ${total}`);
  }
});
