/** The fault server as `sluice fault` starts it. */
import { type FaultServer, type FaultServerOptions, startFaultServer } from "../../lib/fault/server.ts";
import { chat } from "../../lib/protocols/chat/mod.ts";
import { messages } from "../../lib/protocols/messages/mod.ts";
import { responses } from "../../lib/protocols/responses/mod.ts";

/** Starts a server on a free port of the loopback interface. */
export function startServer(options: Pick<FaultServerOptions, "always" | "onRequest"> = {}): FaultServer {
  return startFaultServer({ hostname: "127.0.0.1", port: 0, codecs: [chat, responses, messages], ...options });
}
