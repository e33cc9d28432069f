import { assertEquals } from "@std/assert";
import { QUIRKS } from "../../lib/protocols/quirks/mod.ts";
import {
  addressOf,
  protocolsOf,
  type Vendor,
  type VendorName,
  vendorOf,
  VENDORS,
} from "../../lib/upstreams/vendors.ts";

const NAMES = Object.keys(VENDORS) as VendorName[];

Deno.test("addressOf() appends the protocol's path to the vendor's address", () => {
  const cases: [
    VendorName,
    base: string,
    Parameters<typeof addressOf>[0]["protocol"],
    model: string,
    stream: boolean,
    string,
  ][] = [
    ["openai", "https://api.openai.com/v1", "chat", "m", true, "https://api.openai.com/v1/chat/completions"],
    ["openai", "https://api.openai.com/v1", "responses", "m", false, "https://api.openai.com/v1/responses"],
    ["anthropic", "https://api.anthropic.com", "messages", "m", false, "https://api.anthropic.com/v1/messages"],
    [
      "azure",
      "https://n.openai.azure.com/openai/v1",
      "chat",
      "m",
      false,
      "https://n.openai.azure.com/openai/v1/chat/completions",
    ],
    [
      "gemini",
      "https://g.example/v1beta",
      "gemini",
      "gemini-2.5-pro",
      false,
      "https://g.example/v1beta/models/gemini-2.5-pro:generateContent",
    ],
    [
      "gemini",
      "https://g.example/v1beta",
      "gemini",
      "m",
      true,
      "https://g.example/v1beta/models/m:streamGenerateContent?alt=sse",
    ],
    [
      "gemini",
      "https://g.example/v1beta",
      "gemini",
      "a/b?c#d:e",
      false,
      "https://g.example/v1beta/models/a/b%3Fc%23d%3Ae:generateContent",
    ],
    ["ollama", "http://[::1]:11434/v1", "chat", "m", false, "http://[::1]:11434/v1/chat/completions"],
  ];
  for (const [name, baseUrl, protocol, model, stream, address] of cases) {
    assertEquals(addressOf({ vendor: vendorOf(name), baseUrl, protocol, model, stream }), address);
  }
});

Deno.test("every vendor sends its key in one header, over https except to local addresses", () => {
  const headers: Record<string, string[]> = {};
  for (const name of NAMES) {
    const vendor = vendorOf(name);
    const written = vendor.auth("k");
    const [header = "", value = ""] = Object.entries(written)[0] ?? [];
    assertEquals(Object.keys(written).length, 1);
    assertEquals(value, header === "authorization" ? "Bearer k" : "k");
    (headers[header] ??= []).push(name);
    if (vendor.baseUrl !== undefined) {
      const { protocol, hostname, search } = new URL(vendor.baseUrl);
      assertEquals([protocol, search], [hostname === "127.0.0.1" ? "http:" : "https:", ""], name);
    }
  }
  assertEquals(headers["x-api-key"], ["anthropic"]);
  assertEquals(headers["x-goog-api-key"], ["gemini"]);
  assertEquals(headers["api-key"], ["azure"]);
});

Deno.test("every vendor has its quirk, and prefers its default protocol", () => {
  assertEquals(Object.keys(QUIRKS).sort(), [...NAMES].sort());
  for (const name of NAMES) {
    const vendor: Vendor = vendorOf(name);
    assertEquals(protocolsOf(vendor).slice(0, vendor.protocols.length), [...vendor.protocols]);
    assertEquals(new Set(protocolsOf(vendor)).size, protocolsOf(vendor).length);
  }
  assertEquals(vendorOf("openai-compatible").protocols, ["chat"]);
});
