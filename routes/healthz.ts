import { alive } from "../lib/pipeline/health.ts";

export function GET(): Response {
  return alive();
}
