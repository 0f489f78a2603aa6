#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/nearest.h"
#include "table/csv.h"
#include "table/table.h"

namespace paceline::table {
namespace {

/// Whether the column becomes a fact above the header: all rows have the same known text. Names and figures
/// remain columns.
bool is_fact(const Table& table, Column column) {
  if (table.rows.size() < 2) return false;
  if (column.role() != ColumnRole::configuration && column.role() != ColumnRole::condition) return false;
  const auto& first = table.rows.front().text(column);
  return !first.empty() &&
         std::ranges::all_of(table.rows, [&](const Row& row) { return row.text(column) == first; });
}

bool is_said(const Table& table, Column column) {
  return std::ranges::any_of(table.rows,
                             [&](const Row& row) { return row.knows(column) || row.is_unknown(column); });
}

std::string fact_line(std::string_view name, Column column, const std::string& text) {
  const bool is_number = column.kind() == ColumnKind::count || column.kind() == ColumnKind::number ||
                         column.kind() == ColumnKind::part;
  std::string plain = text;
  std::replace(plain.begin(), plain.end(), '"', '\'');
  return is_number ? fmt::format("# {} = {}\n", name, text) : fmt::format("# {} = \"{}\"\n", name, plain);
}

struct Template {
  std::string_view name, comment, columns;
  std::string_view rows;
};

constexpr Template kTemplates[] = {
    {"scaling",
     "Times or rates on several numbers of workers, and what is claimed about them. `time_of` says what "
     "time_s is of; `scaling` is weak (local_batch stays) or strong (global_batch stays).",
     "run,workers,local_batch,train_samples,time_s,time_of,scaling,repeats,spread_s,spread_is,compute_s,communication_s,"
     "communication_is,claimed_speedup,claimed_efficiency",
     "n1,1,128,50000,100.0,epoch,weak,3,0.8,sd,99.2,0,exposed,1.00,1.00\n"
     "n4,4,128,50000,27.9,epoch,weak,3,0.4,sd,24.9,2.3,exposed,3.58,0.90\n"},
    {"communication",
     "Bytes, seconds and the bandwidth that is claimed. `bandwidth_is`: sent (by a rank), algbw (X / t) or busbw (algbw x "
     "2(N-1)/N); `link` is what the specification says.",
     "run,workers,local_batch,train_samples,parameters,element_bytes,communication_s,time_of,algorithm,claimed_bandwidth,"
     "bandwidth_unit,bandwidth_is,link,link_unit,link_is,claimed_utilisation",
     "n2,2,128,50000,11173962,4,2.90,epoch,ring,3.01,GB/s,busbw,12.5,GB/s,one-way,0.24\n"
     "n4,4,128,50000,11173962,4,2.10,epoch,ring,3.13,GB/s,busbw,12.5,GB/s,one-way,0.25\n"},
    {"batches", "Times or rates against the batch on one number of workers.",
     "run,workers,local_batch,train_samples,time_s,time_of,rate_per_s,rate_of,statistic,repeats,warmup",
     "b32,1,32,50000,15.5,epoch,3230,all,median,3,10\n"
     "b128,1,128,50000,9.80,epoch,5100,all,median,3,10\n"},
    {"accuracy",
     "The result of a training. `accuracy` is a part of 1, `loss` the mean cross entropy of the same set.",
     "run,workers,global_batch,train_samples,test_samples,epochs,updates,seed,learning_rate,optimizer,loss,accuracy,"
     "quality_of,best",
     "small,1,128,50000,10000,30,11700,0,0.1,sgd,0.312,0.9312,test,yes\n"
     "large,4,2048,50000,10000,30,720,0,0.8,sgd,0.401,0.9017,test,no\n"},
};

/// Header and rows of these columns, and of every setting.
std::string lines_of(const Table& table, const std::vector<Column>& columns) {
  std::set<std::string> settings;
  for (const auto& row : table.rows)
    for (const auto& [name, value] : row.settings) settings.insert(name);
  std::string header;
  for (const auto column : columns) header += (header.empty() ? "" : ",") + std::string(column.name());
  for (const auto& name : settings)
    header += (header.empty() ? "" : ",") + csv_cell(fmt::format("{}{}", kSettingPrefix, name));
  std::string text = header + '\n';
  for (const auto& row : table.rows) {
    std::string line;
    bool first = true;
    const auto add = [&](std::string_view cell) {
      line += (first ? "" : ",") + csv_cell(cell);
      first = false;
    };
    for (const auto column : columns)
      add(row.is_unknown(column) ? "unknown" : std::string_view(row.text(column)));
    for (const auto& name : settings) {
      const auto found = row.settings.find(name);
      add(found == row.settings.end() ? "" : std::string_view(found->second));
    }
    text += line + '\n';
  }
  return text;
}

}  // namespace

std::string to_csv(const Table& table) {
  std::string text = fmt::format("# schema = \"{}\"\n", Table::kSchema);
  for (const auto& note : table.notes) {
    std::string plain = note;
    std::replace(plain.begin(), plain.end(), '\n', ' ');
    std::replace(plain.begin(), plain.end(), '=', ':');  // otherwise it would be read as a fact
    text += fmt::format("# {}\n", plain);
  }
  std::vector<Column> columns;
  for (std::size_t i = 0; i < Column::count(); ++i) {
    const auto column = Column::at(i);
    if (is_fact(table, column))
      text += fact_line(column.name(), column, table.rows.front().text(column));
    else if (is_said(table, column))
      columns.push_back(column);
  }
  return text + lines_of(table, columns);
}

std::string to_plain_csv(const Table& table) {
  std::vector<Column> columns;
  for (std::size_t i = 0; i < Column::count(); ++i)
    if (is_said(table, Column::at(i))) columns.push_back(Column::at(i));
  return lines_of(table, columns);
}

std::vector<std::string> template_names() {
  std::vector<std::string> names;
  for (const auto& one : kTemplates) names.emplace_back(one.name);
  return names;
}

std::string template_text(std::string_view name) {
  for (const auto& one : kTemplates)
    if (one.name == name)
      return fmt::format(
          "# schema = \"{}\"\n# {}\n# Keep the digits as they were printed; leave a cell empty where it is not known. The "
          "rows are invented: replace them.\n# What holds of all rows can stand above the header: # model = \"resnet18\"\n"
          "{}\n{}",
          Table::kSchema, one.comment, one.columns, one.rows);
  base::fail(base::ErrorKind::usage, "there is no template '{}'{}", name,
             base::suggestion(name, template_names()));
}

}  // namespace paceline::table
