#include "report/page.h"

// The assembler includes the file directly: no limit on the size of literals, no escaping, and no time to
// compile a megabyte.
asm(".section .rodata\n"
    ".global paceline_page_begin\n"
    ".global paceline_page_end\n"
    "paceline_page_begin:\n"
    ".incbin \"" PACELINE_PAGE_FILE
    "\"\n"
    "paceline_page_end:\n"
    ".byte 0\n"
    ".text\n");
extern "C" const char paceline_page_begin[];
extern "C" const char paceline_page_end[];

namespace paceline::report {

const std::string& page_template() {
  static const std::string page(paceline_page_begin, paceline_page_end);
  return page;
}

bool page_is_built() { return page_template().find("paceline-fallback-page") == std::string::npos; }

}  // namespace paceline::report
