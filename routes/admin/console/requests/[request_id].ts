export { requestPage as GET } from "../../../../lib/console/request_page.tsx";
