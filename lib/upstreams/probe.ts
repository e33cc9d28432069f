/**
 * Requests to an upstream that carry nothing of a client's and cost nothing: the list of its models, and a request without
 * a model, which must fail as bad and not as unauthorized.
 */
import type { Secret } from "../secret.ts";
import type { UpstreamProtocol } from "../protocols/upstream_codec.ts";
import { pieceDecoder } from "../json/utf8_steps.ts";
import type { AddressGuard } from "./address_guard.ts";
import { createPinnedUrls } from "./pinned_urls.ts";
import { addressOf, type Vendor, type VendorName, vendorOf } from "./vendors.ts";

/** Longest text that is read of an answer where only an error's words matter, in UTF-16 code units. */
const ERROR_LENGTH = 64 * 1024;

/** The upstream that is asked. */
export interface ProbedHost {
  vendor: VendorName;
  /** Its address, without a slash at the end. */
  baseUrl: string;
  key: Secret | undefined;
  protocols: readonly UpstreamProtocol[] | undefined;
  /** Judges what it resolves to; absent: metadata addresses are refused. */
  guard?: AddressGuard | undefined;
}

/** How it is asked. */
export interface ProbeOptions {
  /** It allows the header `host`. */
  client: Deno.HttpClient;
  signal: AbortSignal;
  /** Longest text that is read of an answer, in UTF-16 code units. */
  mostText: number;
}

/** What it is asked. */
export interface ProbeRequest {
  path: string;
  /** Whether the key goes along. */
  key: boolean;
  /** Absent: it is a GET. */
  body?: string;
}

/** What it answered. */
export interface ProbeReply {
  status: number;
  location: string | null;
  date: string | null;
  text: string;
}

/** Sends one request. Redirects are answers: following one would carry the key elsewhere. @throws where there is no answer */
export async function askHost(
  { vendor, baseUrl, key, guard }: ProbedHost,
  request: ProbeRequest,
  { client, signal, mostText }: ProbeOptions,
): Promise<ProbeReply> {
  const { path, body } = request;
  const { auth }: Vendor = vendorOf(vendor);
  const pinned = await createPinnedUrls({ guard, pins: true }).of(path.startsWith("http") ? path : baseUrl + path);
  const response = await fetch(pinned.url, {
    method: body === undefined ? "GET" : "POST",
    redirect: "manual",
    client,
    signal,
    headers: {
      ...pinned.headers,
      accept: "application/json",
      "user-agent": "sluice",
      ...(vendor === "anthropic" && { "anthropic-version": "2023-06-01" }),
      ...(request.key && key !== undefined && auth(key.reveal())),
      ...(body !== undefined && { "content-type": "application/json" }),
    },
    ...(body !== undefined && { body }),
  });
  const decode = pieceDecoder();
  let text = "";
  for await (const piece of response.body ?? []) {
    text += decode(piece);
    if (text.length > mostText) break;
  }
  const { status, headers } = response;
  return { status, location: headers.get("location"), date: headers.get("date"), text };
}

/** The list of models. */
export function modelList({ vendor }: Pick<ProbedHost, "vendor">, { key }: { key: boolean }): ProbeRequest {
  if (vendor === "anthropic") return { path: "/v1/models?limit=1000", key };
  return { path: vendor === "gemini" ? "/models?pageSize=1000" : "/models", key };
}

/** A request without a model: there is nothing to bill. */
export function emptyRequest({ vendor: name, baseUrl, protocols }: ProbedHost): ProbeRequest {
  const vendor = vendorOf(name);
  const protocol = protocols?.[0] ?? vendor.protocols[0];
  return {
    path: addressOf({ vendor, baseUrl, protocol, model: "sluice-doctor", stream: false }),
    key: true,
    body: "{}",
  };
}

/** Whether an answer says that the key is not accepted. Google refuses a wrong key as a bad request. */
export function refusesKey({ status, text }: Pick<ProbeReply, "status" | "text">): boolean {
  return status === 401 || (status === 400 && /API[ _]key[ _](not valid|invalid|expired)/i.test(text));
}

/** Whether an answer may mean that the key is not accepted, where nothing but the key could be forbidden. */
export function mayRefuseKey(reply: Pick<ProbeReply, "status" | "text">): boolean {
  return reply.status === 403 || refusesKey(reply);
}

/**
 * Finds out whether an upstream answers, and whether it refuses the key: by its list of models, and by an empty request
 * where the list is open to everybody or closed to this key. A 403 refuses no key: keys with few rights may not list models,
 * or not use every endpoint. Never rejects.
 */
export async function probeHost(host: ProbedHost, signal: AbortSignal): Promise<"up" | "refused" | "down"> {
  const client = Deno.createHttpClient({ http2: false, poolMaxIdlePerHost: 0, allowHost: true });
  const options: ProbeOptions = { client, signal, mostText: ERROR_LENGTH };
  try {
    const list = await askHost(host, modelList(host, { key: true }), options);
    if (list.status >= 500) return "down";
    if (refusesKey(list)) return "refused";
    if (host.key === undefined) return "up";
    if (list.status === 200 && !await isListOpen(host, options)) return "up";
    return refusesKey(await askHost(host, emptyRequest(host), options)) ? "refused" : "up";
  } catch {
    return "down";
  } finally {
    client.close();
  }
}

async function isListOpen(host: ProbedHost, options: ProbeOptions): Promise<boolean> {
  return (await askHost(host, modelList(host, { key: false }), options)).status === 200;
}
