/** `GET /admin/v1/openapi.json`: the OpenAPI description of the admin API, for operators only. */
import { publicKeySchema } from "../access/public_key.ts";
import type { JsonObject } from "../json/mod.ts";
import { describePaths, jsonSchema, type Operation } from "../openapi/operation.ts";
import { describedSchema, openaiErrorSchema } from "../openapi/schemas.ts";
import { adminResponse } from "./response.ts";
import { keyChangeSchema, newKeySchema, rotationSchema } from "./keys.ts";
import { explanationSchema, requestPageSchema } from "../billing/reports/request_schemas.ts";
import * as reports from "../billing/reports/schemas.ts";
import * as answers from "./schemas.ts";

/** Forms of a time, for descriptions of parameters. */
const MOMENT = "a duration before now such as 7d, a date such as 2026-11-01, or an exact time";

const REQUEST_FILTERS = {
  key: "Name or id of the key",
  group: "Name of the group",
  model: "Public id of the model",
  upstream: "Name of the last upstream tried",
  endpoint: "Name of the endpoint, such as chat or images.edits",
  status: "HTTP status such as 429, or a class such as 4xx",
  failed: "true: only requests that failed, were refused or lost",
  reason: "Code of the reason for a refusal or failure",
  user: "End user that the client sent",
  tag: "One of the tags that the client sent",
  min_cost_usd: "Minimum cost in USD",
  min_ms: "Minimum duration in milliseconds",
};

/** All operations by method and path. A test compares them with the access table. */
const OPERATIONS: Readonly<Record<string, Operation>> = {
  "GET /admin/v1/openapi.json": { summary: "This description", reply: describedSchema },
  "GET /admin/v1/keys": { summary: "List the keys of the store, oldest first", reply: answers.keyListSchema },
  "POST /admin/v1/keys": { summary: "Create a key", body: newKeySchema, reply: answers.shownKeySchema, status: 201 },
  "GET /admin/v1/keys/[key]": {
    summary: "Get a key by its name or id",
    reply: answers.keyWithBudgetSchema,
    others: [404],
  },
  "PATCH /admin/v1/keys/[key]": { summary: "Change a key", body: keyChangeSchema, reply: publicKeySchema },
  "DELETE /admin/v1/keys/[key]": { summary: "Revoke a key permanently", reply: publicKeySchema, others: [404] },
  "POST /admin/v1/keys/[key]/rotate": {
    summary: "Give a key a new secret; the old one stays valid for a limited time",
    body: rotationSchema,
    bodyIsOptional: true,
    reply: answers.shownKeySchema,
  },
  "GET /admin/v1/budgets": {
    summary: "List the budgets of groups, keys and end users with their spent, held and remaining amounts",
    query: {
      scope: "group, key or user. Default: all",
      group: "Only this group, its keys and their end users",
      key: "Only this key, by its name or id, and its end users",
      user: "Only this end user of the key; empty: requests without an end user",
      limit: "Maximum number of end users, 1 to 1000: those who spent most. Default: 20",
    },
    reply: reports.budgetListSchema,
  },
  "GET /admin/v1/changes": {
    summary: "List the changes by operators, latest first",
    query: {
      limit: "Maximum number of changes, 1 to 1000. Default: 50",
      cursor: "The `next` of the previous page",
      request: "Only changes of this request, such as one of the playground",
    },
    reply: answers.changePageSchema,
    others: [400],
  },
  "GET /admin/v1/requests": {
    summary: "Find requests in the ledger, one page at a time",
    query: {
      since: `Earliest arrival: ${MOMENT}. Default: all that the ledger has`,
      until: `Latest arrival, exclusive: ${MOMENT}. Default: none`,
      ...REQUEST_FILTERS,
      sort: "time (the default), cost or duration: the newest, most expensive or longest first",
      limit: "Maximum number of requests, 1 to 1000. Default: 50",
      cursor: "The `next` of the previous page, with the same other parameters",
      after_seq:
        "The `last_seq` of an earlier answer: only requests that ended since, in the order of the ledger. Repeat it " +
        "to follow the ledger",
    },
    reply: requestPageSchema,
    others: [400],
  },
  "GET /admin/v1/requests/stream": {
    summary: "Follow the ledger: an event `request` for each new entry, with its `seq` as the id",
    query: {
      ...REQUEST_FILTERS,
      after_seq: "Start after this `seq`. Default: the last one. The header Last-Event-ID takes precedence",
    },
    streams: "always",
  },
  "GET /admin/v1/usage": {
    summary: "Get the exact usage and costs of a period",
    query: {
      since: `Start: ${MOMENT}. Default: this month`,
      until: `End, exclusive: ${MOMENT}. Default: the end of today`,
      period: "today, yesterday, last-month, or a month such as 2026-10, by UTC; instead of since and until",
      by:
        "key (the default), group, model, day, user or tag, two of them separated by a comma, or upstream: then with " +
        "one line per model and day",
      key: "Only this key, by name or id. Default: all",
      group: "Only this group. Default: all",
      model: "Only this model, by id. Default: all",
      user: "Only this end user. Default: all",
      tag: "Only requests with this tag. Default: all",
      upstream: "Only this upstream, with by=upstream. Default: all",
    },
    reply: reports.usageSchema,
  },
  "GET /admin/v1/usage/[request_id]": {
    summary: "Explain one request and its price, line by line",
    reply: explanationSchema,
    others: [404],
  },
  "GET /admin/v1/health": {
    summary: "Show the state of upstreams, stores, keys and budgets",
    reply: answers.gatewayHealthSchema,
  },
  "GET /admin/v1/config": { summary: "The configuration in force, without secrets", reply: answers.configStateSchema },
  "POST /admin/v1/reload": {
    summary: "Reload the configuration. A configuration with mistakes is refused, and the answer lists them",
    reply: answers.reloadSchema,
    others: [400],
  },
  "POST /admin/v1/audit": {
    summary: "Recalculate the whole ledger and list every difference",
    reply: reports.auditSchema,
  },
};

let document: JsonObject | undefined;

/** Returns the description, which is built at the first request. */
export function serveAdminDocument(): Response {
  return adminResponse(document ??= adminDocument());
}

/** Builds the OpenAPI 3.1 document of the admin API. */
export function adminDocument(): JsonObject {
  return {
    openapi: "3.1.0",
    info: { title: "Sluice admin API", version: "1", description: "Keys, usage and the audit of the ledger." },
    paths: describePaths(OPERATIONS),
    components: {
      schemas: { OpenaiError: jsonSchema(openaiErrorSchema) },
      securitySchemes: {
        bearer: { type: "http", scheme: "bearer", description: "The admin key; for GET, also the viewer key" },
      },
    },
  };
}
