export { asset as GET } from "../../../../lib/console/assets.ts";
