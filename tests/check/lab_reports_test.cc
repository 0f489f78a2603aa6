/// Tables as lab reports, papers and posts print them, right and wrong; the numbers are invented. Each with
/// what a careful reader would say of it: all warnings and errors, and nothing more.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "check/check.h"

namespace paceline::check {
namespace {

struct Report {
  const char* name;
  const char* csv;
  std::vector<std::string> said = {};  ///< "error ratio.speedup n4", without notes
};

std::vector<std::string> said_of(const Report& report) {
  std::vector<std::string> all;
  for (const auto& one : check_table(table::read_table(report.csv, "t.csv")).findings)
    if (one.severity != Severity::note)
      all.push_back(
          fmt::format("{} {} {}", name(one.severity), one.rule, one.rows.empty() ? "" : one.rows.front()));
  return all;
}

std::vector<Report> right_reports() {
  return {
      {"rates of one to eight GPUs",
       "run,model,device,workers,local_batch,rate_per_s,rate_of,claimed_speedup,claimed_efficiency\n"
       "1 GPU,resnet50,A100,1,128,412,all,1.00,1.00\n2 GPUs,resnet50,A100,2,128,809,all,1.96,0.98\n"
       "4 GPUs,resnet50,A100,4,128,1588,all,3.85,0.96\n8 GPUs,resnet50,A100,8,128,3098,all,7.52,0.94\n"},
      {"rates of each GPU",
       "run,workers,local_batch,rate_per_s,rate_of,claimed_efficiency\n1,1,64,412,worker,\n8,8,64,395,worker,0.96\n"
       "64,64,64,371,worker,0.90\n"},
      {"weak scaling by seconds of a step",
       "run,workers,local_batch,time_s,time_of,scaling,claimed_speedup,claimed_efficiency\n"
       "n1,1,64,0.155,step,weak,,\nn2,2,64,0.159,step,weak,1.95,0.975\nn4,4,64,0.167,step,weak,3.71,0.928\n"
       "n8,8,64,0.171,step,weak,7.25,0.906\n"},
      {"strong scaling by seconds of a step",
       "run,workers,global_batch,time_s,time_of,scaling,claimed_speedup,claimed_efficiency\n"
       "n1,1,256,0.420,step,strong,,\nn2,2,256,0.218,step,strong,1.93,96\nn4,4,256,0.115,step,strong,3.65,91\n"},
      {"a little more than linear, within the noise of single times",
       "run,workers,time_s,time_of,claimed_speedup\n1,1,640.2,run,\n2,2,301.5,run,2.12\n4,4,152.8,run,4.19\n"
       "8,8,80.1,run,7.99\n16,16,44.6,run,14.35\n"},
      {"a baseline of four nodes",
       "run,nodes,workers,global_batch,rate_per_s,rate_of,claimed_speedup,claimed_efficiency\n"
       "4,4,32,8192,11280,all,1,100\n8,8,64,16384,22010,all,1.95,97.6\n16,16,128,32768,42300,all,3.75,93.8\n"},
      {"speedups over an ideal worker, from a baseline of eight",
       "run,workers,rate_per_s,rate_of,claimed_speedup\n8,8,3100,all,8\n16,16,6010,all,15.5\n32,32,11800,all,30.5\n"},
      {"two programs, each with its own baseline",
       "run,program,workers,local_batch,time_s,time_of,claimed_speedup\nddp1,DDP,1,32,182.4,epoch,\nddp4,DDP,4,32,49.1,epoch,3.71\n"
       "hvd1,Horovod,1,32,190.3,epoch,\nhvd4,Horovod,4,32,50.6,epoch,3.76\n"},
      {"a GPU against a CPU",
       "run,device,workers,local_batch,time_s,time_of,baseline,claimed_speedup\ncpu,2 x Xeon,1,128,1911,epoch,,\n"
       "gpu,V100,1,128,36.7,epoch,cpu,52.1\n"},
      {"bf16 against fp32 on as many workers",
       "run,workers,local_batch,rate_per_s,rate_of,baseline,claimed_speedup,setting.precision\n"
       "full,4,128,1580,all,,,fp32\nhalf,4,128,4010,all,full,2.54,bf16\n"},
      {"gradients are accumulated",
       "run,workers,local_batch,global_batch,setting.accumulation_steps,time_s,time_of\na,4,32,512,4,0.811,step\n"},
      {"steps of forty epochs, with the last batch",
       "run,workers,local_batch,train_samples,epochs,steps,time_s,time_of\na,4,128,60000,40,4720,388,run\n"},
      {"bandwidth of gradients",
       "run,model,workers,local_batch,parameters,element_bytes,communication_s,time_of,claimed_bandwidth,bandwidth_unit,bandwidth_is\n"
       "a,resnet50,8,64,25557032,4,0.0200,step,8.94,GB/s,busbw\nb,resnet50,8,64,25557032,4,0.0200,step,40.9,Gbit/s,algbw\n"},
      {"nccl-tests on NVLink",
       "run,workers,message_bytes,time_s,time_of,claimed_bandwidth,bandwidth_unit,bandwidth_is,link,link_unit,link_is,claimed_utilisation\n"
       "1 MiB,8,1048576,0.0000613,step,29.93,GB/s,busbw,600,GB/s,both-ways,0.100\n"
       "1 GiB,8,1073741824,0.008096,step,232.1,GB/s,busbw,600,GB/s,both-ways,0.774\n"},
      {"reduced in the switch",
       "run,workers,message_bytes,time_s,time_of,algorithm,claimed_bandwidth,bandwidth_unit,bandwidth_is,link,link_unit,link_is\n"
       "8 GiB,8,8589934592,0.03131,step,NVLS,480.1,GB/s,busbw,450,GB/s,one-way\n"},
      {"parts that overlap, as totals",
       "run,workers,local_batch,time_s,time_of,compute_s,communication_s,communication_is\n"
       "n1,1,64,0.110,step,0.108,,\nn4,4,64,0.121,step,0.112,0.048,total\n"},
      {"accuracies of three seeds and their mean",
       "run,global_batch,seed,seeds,test_samples,accuracy,accuracy_sd,quality_of,statistic\n"
       "b128,128,0,3,10000,0.9412,,test,\nb128,128,1,3,10000,0.9431,,test,\nb128,128,2,3,10000,0.9425,,test,\n"
       "mean,128,,3,10000,0.9423,0.0010,test,mean\n"},
      {"top-1 of ImageNet",
       "run,model,classes,parameters,workers,global_batch,train_samples,test_samples,epochs,accuracy,loss,quality_of\n"
       "a,ResNet-50,1000,25.6e6,8,256,1281167,50000,90,0.7613,0.961,validation\n"},
      {"share of the peak",
       "run,workers,global_batch,time_s,time_of,flops_per_sample,peak_flops\na,8,2048,0.1031,step,12.3e9,312e12\n"},
      {"epochs and runs agree",
       "run,workers,local_batch,time_s,time_of,epochs,claimed_speedup\ne1,1,128,52.0,epoch,,\nr1,1,128,1068,run,20,\n"
       "e4,4,128,14.1,epoch,,3.69\nr4,4,128,296,run,20,3.61\n"},
      {"weak scaling of runs whose work grows",
       "run,workers,time_s,time_of,scaling,claimed_efficiency\n1,1,100.2,run,weak,\n8,8,104.1,run,weak,0.963\n"
       "64,64,118.0,run,weak,0.849\n"},
      {"rates of nobody says whom, and nodes",
       "run,nodes,local_batch,rate_per_s,claimed_speedup\n1,1,64,3100,1\n2,2,64,6010,1.94\n4,4,64,11700,3.77\n"},
      {"rates without a word whose, of all",
       "run,workers,rate_per_s,claimed_speedup\n1,1,410,\n4,4,1590,3.88\n"},
      {"rates without a word whose, of each",
       "run,workers,rate_per_s,claimed_efficiency\n1,1,410,\n4,4,398,0.97\n"},
      {"time to accuracy with more workers and fewer epochs said",
       "run,workers,local_batch,epochs,train_samples,time_s,time_of,claimed_speedup\na,1,128,10,50000,1000,run,\n"
       "b,4,128,5,50000,140,run,3.57\n"},
  };
}

std::vector<Report> wrong_reports() {
  return {
      {"an efficiency called speedup",
       "run,workers,local_batch,time_s,time_of,scaling,claimed_speedup\nn1,1,64,0.155,step,weak,\nn2,2,64,0.159,step,weak,0.97\n"
       "n4,4,64,0.167,step,weak,0.93\n",
       {"error ratio.speedup n2", "error ratio.speedup n4"}},
      {"speedup over more epochs",
       "run,workers,local_batch,epochs,time_s,time_of,claimed_speedup\na,1,128,10,1000,run,\nb,4,128,5,140,run,7.14\n",
       {"error ratio.speedup b"}},
      {"efficiencies in per cent, N times too large",
       "run,workers,time_s,time_of,claimed_efficiency\na,1,100.0,epoch,100\nb,4,31.0,epoch,322\nc,8,17.2,epoch,581\n",
       {"error ratio.efficiency b", "error ratio.efficiency c"}},
      {"a bandwidth of elements",
       "run,workers,parameters,element_bytes,communication_s,time_of,claimed_bandwidth,bandwidth_unit,bandwidth_is\n"
       "a,8,25557032,4,0.0200,step,2.236,GB/s,busbw\n",
       {"error bandwidth.formula a"}},
      {"gradients of bf16, not said, are four bytes no more than two",
       "run,workers,parameters,communication_s,time_of,claimed_bandwidth,bandwidth_unit,bandwidth_is\n"
       "a,8,25557032,0.0200,step,4.47,GB/s,busbw\n"},
      {"several things differ between two programs",
       "run,program,workers,rate_per_s,rate_of,baseline,claimed_speedup,setting.precision\nold,ours,4,1000,all,,,fp32\n"
       "new,theirs,4,2500,all,old,2.50,bf16\n",
       {"warning compare.settings new"}},
      {"time saved",
       "run,workers,local_batch,time_s,time_of,claimed_speedup\na,1,128,100.0,epoch,\nb,2,128,52.0,epoch,0.48\n",
       {"error ratio.speedup b"}},
      {"a speedup that nobody can follow",
       "run,workers,local_batch,time_s,time_of,claimed_speedup\na,1,128,100.0,epoch,\nb,4,128,29.0,epoch,2.61\n",
       {"warning ratio.speedup b"}},
      {"gigabytes for gigabits",
       "run,workers,local_batch,parameters,element_bytes,communication_s,time_of,claimed_bandwidth,bandwidth_unit,bandwidth_is\n"
       "a,8,64,25557032,4,0.0200,step,71.6,GB/s,busbw\n",
       {"error bandwidth.formula a"}},
      {"the share of both directions",
       "run,workers,message_bytes,time_s,time_of,claimed_bandwidth,bandwidth_unit,bandwidth_is,link,link_unit,link_is,claimed_utilisation\n"
       "1 GiB,8,1073741824,0.008096,step,232.1,GB/s,busbw,600,GB/s,both-ways,0.387\n",
       {"error bandwidth.link 1 GiB"}},
      {"evaluation in one time only",
       "run,workers,local_batch,time_s,time_of,covers,claimed_speedup\na,1,128,131.0,epoch,data compute evaluation,\n"
       "b,4,128,29.4,epoch,data compute communication,4.46\n",
       {"error compare.settings b", "warning ratio.superlinear b"}},
      {"exposed parts above the whole",
       "run,workers,time_s,time_of,compute_s,communication_s,communication_is\nn4,4,92.1,epoch,80.3,15.4,exposed\n",
       {"error parts.sum n4"}},
      {"a flat line over workers",
       "run,workers,local_batch,train_samples,time_s,time_of,covers,claim\nn1,1,64,50000,41.2,epoch,data compute communication,\n"
       "n2,2,64,50000,38.9,epoch,data compute communication,no gain\nn4,4,64,50000,38.1,epoch,data compute communication,no gain\n",
       {"warning input.ceiling n1"}},
      {"steps of another number of workers",
       "run,workers,local_batch,train_samples,epochs,steps\na,8,32,50000,10,3900\n",
       {"error size.workers a"}},
      {"asynchronous launches",
       "run,workers,local_batch,time_s,time_of,flops_per_sample,peak_flops\na,1,256,0.0021,step,12.3e9,19.5e12\n",
       {"error time.clock a"}},
      {"a loss of the training set beside an accuracy of the test",
       "run,test_samples,loss,accuracy,quality_of\na,10000,0.0021,0.9512,test\n",
       {"error accuracy.loss-bound a"}},
      {"a single best learning rate",
       "run,global_batch,learning_rate,test_samples,accuracy,best,quality_of\na,128,0.05,10000,0.9311,no,test\n"
       "b,128,0.1,10000,0.9342,yes,test\nc,128,0.15,10000,0.9330,no,test\nd,128,0.2,10000,0.9298,no,test\n",
       {"warning accuracy.noise b"}},
      {"images of one worker for those of all",
       "run,workers,local_batch,time_s,time_of,rate_per_s,rate_of\nn8,8,64,0.171,step,374,all\n",
       {"error time.rate n8"}},
      {"strong called weak",
       "run,workers,global_batch,time_s,time_of,scaling,claimed_speedup\nn1,1,256,0.420,step,weak,\nn4,4,256,0.115,step,weak,3.65\n",
       {"error scaling.mixed n4"}},
      {"a thousand GPUs from two measurements",
       "run,workers,local_batch,rate_per_s,rate_of,claimed_efficiency\n1,1,64,400,all,\n2,2,64,790,all,0.99\n1024,1024,64,,,0.95\n",
       {"warning predict.reach 1024"}},
      {"a parameter server's ring",
       "run,workers,message_bytes,time_s,time_of,algorithm,claimed_bandwidth,bandwidth_unit,bandwidth_is\n"
       "a,8,102228128,0.050,step,parameter server,3.58,GB/s,busbw\n",
       {"warning bandwidth.algorithm a"}},
  };
}

class LabReports : public testing::TestWithParam<Report> {};

TEST_P(LabReports, AreReadAsACarefulReaderWould) {
  const auto& report = GetParam();
  std::string all;
  for (const auto& one : check_table(table::read_table(report.csv, "t.csv")).findings)
    all += fmt::format("{} {}: {}\n", name(one.severity), one.rule, one.sentence);
  EXPECT_THAT(said_of(report), testing::UnorderedElementsAreArray(report.said)) << report.name << "\n"
                                                                                << report.csv << all;
}

std::string test_name(const testing::TestParamInfo<Report>& info) {
  std::string name;
  for (const char one : std::string_view(info.param.name))
    name += std::isalnum(static_cast<unsigned char>(one)) != 0 ? one : '_';
  return name;
}

INSTANTIATE_TEST_SUITE_P(Right, LabReports, testing::ValuesIn(right_reports()), test_name);
INSTANTIATE_TEST_SUITE_P(Wrong, LabReports, testing::ValuesIn(wrong_reports()), test_name);

}  // namespace
}  // namespace paceline::check
